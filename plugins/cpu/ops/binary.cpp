// add, sub, mul, div, max, min: f32, both inputs of the output's shape (broadcast by stride 0), in place on the first.
#include <cmath>

#include "elementwise.h"

namespace tenon::cpu {
namespace {

struct Add {
    float operator()(float a, float b) const { return a + b; }
};
struct Sub {
    float operator()(float a, float b) const { return a - b; }
};
struct Mul {
    float operator()(float a, float b) const { return a * b; }
};
struct Div {
    float operator()(float a, float b) const { return a / b; }
};
// NaN in either operand is the answer.
struct Max {
    float operator()(float a, float b) const { return a > b || std::isnan(a) ? a : b; }
};
struct Min {
    float operator()(float a, float b) const { return a < b || std::isnan(a) ? a : b; }
};

std::string refuse(const Problem &p) {
    Check check(p);
    check.in(0, {TN_TYPE_ID_F32}).in(1, {TN_TYPE_ID_F32}).activation_out(0);
    check.require([&] { return p.out[0].same_shape(p.in[0]) && p.out[0].same_shape(p.in[1]); },
                  "inputs and output differ in shape");
    return check.reason();
}

template <class F>
void combine(const float *a, int64_t step_a, const float *b, int64_t step_b, float *y, int64_t n) {
    // The usual steps get loops of their own, which the compiler turns into vectors.
    if (step_a == 1 && step_b == 1) {
        for (int64_t i = 0; i < n; ++i) y[i] = F()(a[i], b[i]);
    } else if (step_a == 1 && step_b == 0) {
        const float second = n > 0 ? *b : 0.0f;
        for (int64_t i = 0; i < n; ++i) y[i] = F()(a[i], second);
    } else {
        for (int64_t i = 0; i < n; ++i) y[i] = F()(a[i * step_a], b[i * step_b]);
    }
}

template <class F>
std::unique_ptr<Kernel> make(const Problem &p, Features) {
    return elementwise_kernel(p.in[0], p.in[1], 1, combine<F>);
}

constexpr Op k_ops[] = {{TN_OP_ADD, refuse, make<Add>}, {TN_OP_SUB, refuse, make<Sub>}, {TN_OP_MUL, refuse, make<Mul>},
                        {TN_OP_DIV, refuse, make<Div>}, {TN_OP_MAX, refuse, make<Max>}, {TN_OP_MIN, refuse, make<Min>}};

}  // namespace

std::span<const Op> ops_binary() {
    return k_ops;
}

}  // namespace tenon::cpu
