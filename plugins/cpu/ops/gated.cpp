// swiglu, geglu, reglu: act(gate) * up with act = silu, gelu (tanh form), relu. In place on the gate.
#include <cmath>

#include "elementwise.h"
#include "rows/rows.h"

namespace tenon::cpu {
namespace {

void swiglu(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void geglu(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const float x = gate[i];
        y[i] = 0.5f * x * (1.0f + std::tanh(0.79788456f * x * (1.0f + 0.044715f * x * x))) * up[i];
    }
}

void reglu(const float *gate, const float *up, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = (gate[i] < 0 ? 0.0f : gate[i]) * up[i];
}

constexpr Row<GatedFn> k_swiglu[] = {{"avx2", isa_avx2, swiglu_avx2}, {"reference", 0, swiglu}};
constexpr Row<GatedFn> k_geglu[] = {{"avx2", isa_avx2, geglu_avx2}, {"reference", 0, geglu}};

std::string refuse(const Problem &p) {
    Check check(p);
    check.activation_in(0).activation_in(1).activation_out(0);
    check.require([&] { return p.out[0].same_shape(p.in[0]) && p.out[0].same_shape(p.in[1]); },
                  "gate, up and output differ in shape");
    return check.reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features features) {
    const GatedFn f = p.op == TN_OP_SWIGLU  ? choose(k_swiglu, features).fn
                      : p.op == TN_OP_GEGLU ? choose(k_geglu, features).fn
                                            : reglu;
    constexpr int64_t k_cost = 4;  // of an exponential
    return elementwise_kernel(
        p.in[0], p.in[1], k_cost,
        [f](const float *gate, int64_t, const float *up, int64_t, float *y, int64_t n) { f(gate, up, y, n); });
}

constexpr Op k_ops[] = {{TN_OP_SWIGLU, refuse, make}, {TN_OP_GEGLU, refuse, make}, {TN_OP_REGLU, refuse, make}};

}  // namespace

std::span<const Op> ops_gated() {
    return k_ops;
}

}  // namespace tenon::cpu
