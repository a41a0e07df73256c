// Elementwise functions of one input; affine and clamp. f32, any strides in, contiguous out, in place where they agree.
#include <cmath>

#include "elementwise.h"
#include "rows/choose.h"

namespace tenon::cpu {
namespace {

template <float (*f)(float)>
void each(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

float neg(float x) {
    return -x;
}
float abs(float x) {
    return std::fabs(x);
}
float sqr(float x) {
    return x * x;
}
float sqrt(float x) {
    return std::sqrt(x);
}
float rsqrt(float x) {
    return 1.0f / std::sqrt(x);
}
float exp(float x) {
    return std::exp(x);
}
float log(float x) {
    return std::log(x);
}
float sin(float x) {
    return std::sin(x);
}
float cos(float x) {
    return std::cos(x);
}
float sigmoid(float x) {
    return 1.0f / (1.0f + std::exp(-x));
}
float relu(float x) {
    return std::isnan(x) ? x : std::fmax(x, 0.0f);
}
float silu(float x) {
    return x / (1.0f + std::exp(-x));
}
float gelu(float x) {
    return 0.5f * x * (1.0f + std::tanh(0.79788456f * x * (1.0f + 0.044715f * x * x)));
}
// In double: far below 0 a rounding error of the argument would show in the third-last digit.
float gelu_erf(float x) {
    return float(0.5 * double(x) * std::erfc(-0.70710678118654752 * double(x)));
}
float gelu_quick(float x) {
    return x / (1.0f + std::exp(-1.702f * x));
}
// Split at 0, so that exp doesn't overflow and small results keep their digits.
float softplus(float x) {
    return std::isnan(x) ? x : std::fmax(x, 0.0f) + std::log1p(std::exp(-std::fabs(x)));
}

constexpr Row<UnaryFn> k_exp[] = {{"avx2", isa_avx2, exp_avx2}, {"reference", 0, each<exp>}};
constexpr Row<UnaryFn> k_sigmoid[] = {{"avx2", isa_avx2, sigmoid_avx2}, {"reference", 0, each<sigmoid>}};
constexpr Row<UnaryFn> k_silu[] = {{"avx2", isa_avx2, silu_avx2}, {"reference", 0, each<silu>}};
constexpr Row<UnaryFn> k_gelu[] = {{"avx2", isa_avx2, gelu_avx2}, {"reference", 0, each<gelu>}};
constexpr Row<UnaryFn> k_gelu_quick[] = {{"avx2", isa_avx2, gelu_quick_avx2}, {"reference", 0, each<gelu_quick>}};

UnaryFn choose_unary(uint32_t op, Features have) {
    switch (op) {
        case TN_OP_NEG: return each<neg>;
        case TN_OP_ABS: return each<abs>;
        case TN_OP_SQR: return each<sqr>;
        case TN_OP_SQRT: return each<sqrt>;
        case TN_OP_RSQRT: return each<rsqrt>;
        case TN_OP_EXP: return choose(k_exp, have).fn;
        case TN_OP_LOG: return each<log>;
        case TN_OP_SIN: return each<sin>;
        case TN_OP_COS: return each<cos>;
        case TN_OP_TANH: return choose_tanh(have);
        case TN_OP_SIGMOID: return choose(k_sigmoid, have).fn;
        case TN_OP_RELU: return each<relu>;
        case TN_OP_SILU: return choose(k_silu, have).fn;
        case TN_OP_GELU: return choose(k_gelu, have).fn;
        case TN_OP_GELU_ERF: return each<gelu_erf>;
        case TN_OP_GELU_QUICK: return choose(k_gelu_quick, have).fn;
        default: return each<softplus>;
    }
}

std::string refuse(const Problem &p) {
    Check check(p);
    check.in(0, {TN_TYPE_ID_F32}).activation_out(0);
    return check.require([&] { return p.out[0].same_shape(p.in[0]); }, "input and output differ in shape").reason();
}

// Runs row(x, y, n) over all elements of a problem with one input.
template <class RowBody>
std::unique_ptr<Kernel> rowwise(const Problem &p, RowBody row) {
    constexpr int64_t k_cost = 4;  // of an exponential or the like
    return elementwise_kernel(p.in[0], k_cost, [row](const float *from, int64_t step, float *to, int64_t n) {
        if (step == 1) {
            row(from, to, n);
            return;
        }
        for (int64_t i = 0; i < n; ++i) row(from + i * step, to + i, 1);
    });
}

std::unique_ptr<Kernel> make_unary(const Problem &p, Features features) {
    return rowwise(p, choose_unary(p.op, features));
}

std::unique_ptr<Kernel> make_affine(const Problem &p, Features) {
    const auto &params = p.as<tn_params_affine>();
    return rowwise(p, [a = params.a, b = params.b](const float *x, float *y, int64_t n) {
        for (int64_t i = 0; i < n; ++i) y[i] = a * x[i] + b;
    });
}

std::unique_ptr<Kernel> make_clamp(const Problem &p, Features) {
    const auto &params = p.as<tn_params_clamp>();
    return rowwise(p, [lo = params.lo, hi = params.hi](const float *x, float *y, int64_t n) {
        for (int64_t i = 0; i < n; ++i) y[i] = x[i] < lo ? lo : x[i] > hi ? hi : x[i];  // NaN passes
    });
}

constexpr Op k_ops[] = {
    {TN_OP_NEG, refuse, make_unary},        {TN_OP_ABS, refuse, make_unary},      {TN_OP_SQR, refuse, make_unary},
    {TN_OP_SQRT, refuse, make_unary},       {TN_OP_RSQRT, refuse, make_unary},    {TN_OP_EXP, refuse, make_unary},
    {TN_OP_LOG, refuse, make_unary},        {TN_OP_SIN, refuse, make_unary},      {TN_OP_COS, refuse, make_unary},
    {TN_OP_TANH, refuse, make_unary},       {TN_OP_SIGMOID, refuse, make_unary},  {TN_OP_RELU, refuse, make_unary},
    {TN_OP_SILU, refuse, make_unary},       {TN_OP_GELU, refuse, make_unary},     {TN_OP_GELU_ERF, refuse, make_unary},
    {TN_OP_GELU_QUICK, refuse, make_unary}, {TN_OP_SOFTPLUS, refuse, make_unary}, {TN_OP_AFFINE, refuse, make_affine},
    {TN_OP_CLAMP, refuse, make_clamp},
};

}  // namespace

std::span<const Op> ops_unary() {
    return k_ops;
}

}  // namespace tenon::cpu
