// rope: rotary position embedding (Su et al. 2021), with linear and YaRN scaling (Peng et al. 2023). Contract in ops.h.
#include <cmath>
#include <numbers>

#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0), &pos = call.in(1);
    const auto &params = call.params.as<tn_params_rope>();
    TENON_REQUIRE(is_float(x.type) && x.shape.rank() == 3, "rope: x is f32, f16 or bf16 [tokens, heads, d]");
    TENON_REQUIRE(pos.type == DType::i32 && pos.shape == Shape{x.shape[0]},
                  "rope: pos is i32, one for each of {} tokens", x.shape[0]);
    TENON_REQUIRE(params.dims % 2 == 0 && params.dims > 0 && int64_t(params.dims) <= x.shape[2],
                  "rope: {} of {} dimensions can't be turned in pairs", params.dims, x.shape[2]);
    TENON_REQUIRE(params.pairing <= TN_ROPE_HALVES, "rope: unknown pairing {}", params.pairing);
    TENON_REQUIRE(params.base > 0 && params.scale > 0, "rope: base and scale must be above 0");
    if (call.has(2))
        TENON_REQUIRE(call.in(2).type == DType::f32 && call.in(2).shape == Shape{int64_t(params.dims) / 2},
                      "rope: the factors {} don't fit {} dimensions", to_string(call.in(2).shape), params.dims);
    out[0] = {x.type, x.shape};
    return {};
}

/// YaRN's ramp: the pair at which `rotations` full turns happen within the original context.
double ramp_pair(const tn_params_rope &p, double rotations) {
    return p.dims * std::log(p.original_context / (rotations * 2 * std::numbers::pi)) / (2 * std::log(double(p.base)));
}

/// Angle per position for each pair, without the factors.
std::vector<float> frequencies(const tn_params_rope &p) {
    const double low = std::floor(ramp_pair(p, p.beta_fast)), high = std::ceil(ramp_pair(p, p.beta_slow));
    std::vector<float> out(p.dims / 2);
    for (uint32_t i = 0; i < out.size(); ++i) {
        const double original = std::pow(double(p.base), -2.0 * i / p.dims), interpolated = original * p.scale;
        double mix = 0;
        if (p.ext_factor > 0) {
            const double first = std::max(0.0, low), last = std::min(p.dims - 1.0, high);
            mix = (1 - std::clamp((i - first) / std::max(0.001, last - first), 0.0, 1.0)) * p.ext_factor;
        }
        out[i] = float(interpolated * (1 - mix) + original * mix);
    }
    return out;
}

ValueId slice_last(GraphBuilder &b, ValueId x, int64_t start, int64_t size, int64_t step = 1) {
    return b.slice(x, b.value(x).shape.rank() - 1, start, size, step);
}

std::vector<ValueId> decompose(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    const auto &p = call.params.as<tn_params_rope>();
    const Shape &shape = call.in(0).shape;
    const int64_t t = shape[0], h = shape[1], d = shape[2], half = p.dims / 2;
    ValueId step = b.constant(DType::f32, {1, half}, std::as_bytes(std::span<const float>(frequencies(p))));
    if (call.has(2)) step = b.node(TN_OP_DIV, {step, b.reshape(in_order(b, x[2]), {1, half})});
    const ValueId angle = b.mul(b.reshape(b.copy(x[1], DType::f32), {t, 1}), step);  // [t, half]
    const float magnitude = p.attn_factor * (p.ext_factor > 0 ? 1 + 0.1f * std::log(1 / p.scale) : 1);
    auto turn = [&](uint32_t op) { return b.reshape(b.affine(b.node(op, {angle}), magnitude, 0), {t, 1, half}); };
    const ValueId cosine = turn(TN_OP_COS), sine = turn(TN_OP_SIN);
    const bool adjacent = p.pairing == TN_ROPE_ADJACENT;
    const ValueId a = adjacent ? slice_last(b, x[0], 0, half, 2) : slice_last(b, x[0], 0, half);
    const ValueId c = adjacent ? slice_last(b, x[0], 1, half, 2) : slice_last(b, x[0], half, half);
    const ValueId first = b.node(TN_OP_SUB, {b.mul(a, cosine), b.mul(c, sine)});
    const ValueId second = b.add(b.mul(a, sine), b.mul(c, cosine));
    tn_params_concat concat{};
    concat.struct_size = TN_SIZE_PARAMS_CONCAT;
    ValueId y;
    if (adjacent) {
        concat.axis = 3;
        y = b.node(TN_OP_CONCAT, {b.reshape(first, {t, h, half, 1}), b.reshape(second, {t, h, half, 1})},
                   ParamBlob::of(concat));
        y = b.reshape(y, {t, h, 2 * half});
    } else {
        concat.axis = 2;
        y = b.node(TN_OP_CONCAT, {first, second}, ParamBlob::of(concat));
    }
    if (2 * half < d) {
        concat.axis = 2;
        y = b.node(TN_OP_CONCAT, {y, slice_last(b, x[0], 2 * half, d - 2 * half)}, ParamBlob::of(concat));
    }
    return {y};
}

constexpr OpContract k_contracts[] = {{TN_OP_ROPE, infer, k_function, decompose}};

}  // namespace

std::span<const OpContract> op_contracts_rope() {
    return k_contracts;
}

}  // namespace tenon
