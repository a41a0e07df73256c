// rms_norm:   x f [..., d], w f [d] optional -> x / sqrt(mean(x^2) + eps) * w         (Zhang and Sennrich 2019)
// layer_norm: x f [..., d], w, b f [d] optional -> (x - mean) / sqrt(var + eps) * w + b  (Ba et al. 2016)
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0);
    TENON_REQUIRE(is_float(x.type) && x.shape.rank() >= 1, "{} takes f32, f16 or bf16 with a last dimension",
                  call.op.name);
    for (size_t i = 1; i < call.inputs.size(); ++i)
        if (call.has(i))
            TENON_REQUIRE(is_float(call.in(i).type) && call.in(i).shape == Shape{x.shape.back()},
                          "{}: weights {} don't fit {}", call.op.name, to_string(call.in(i).shape), to_string(x.shape));
    out[0] = {x.type, x.shape};
    return {};
}

ValueId over_root(GraphBuilder &b, ValueId x, ValueId mean_square, float eps) {
    return b.mul(x, b.node(TN_OP_RSQRT, {b.affine(mean_square, 1, eps)}));
}

ValueId mean(GraphBuilder &b, ValueId x) {
    return b.node(TN_OP_MEAN, {x});
}

std::vector<ValueId> decompose_rms(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    ValueId y = over_root(b, x[0], mean(b, b.node(TN_OP_SQR, {x[0]})), call.params.as<tn_params_norm>().eps);
    if (call.has(1)) y = b.mul(y, in_type(b, x[1], call.in(0).type));
    return {y};
}

std::vector<ValueId> decompose_layer(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    const ValueId centred = b.node(TN_OP_SUB, {x[0], mean(b, x[0])});
    ValueId y = over_root(b, centred, mean(b, b.node(TN_OP_SQR, {centred})), call.params.as<tn_params_norm>().eps);
    if (call.has(1)) y = b.mul(y, in_type(b, x[1], call.in(0).type));
    if (call.has(2)) y = b.add(y, in_type(b, x[2], call.in(0).type));
    return {y};
}

constexpr OpContract k_contracts[] = {{TN_OP_RMS_NORM, infer, k_summed, decompose_rms},
                                      {TN_OP_LAYER_NORM, infer, k_summed, decompose_layer}};

}  // namespace

std::span<const OpContract> op_contracts_norm() {
    return k_contracts;
}

}  // namespace tenon
