// linear:         x f [..., in], W q [out, in] -> f [..., out]: x W^T
// linear_bias:    the same + b f [out]
// linear_experts: x f [t, e or 1, in], W q [experts, out, in], ids i32 [t, e] -> f [t, e, out]
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0), &w = call.in(1);
    TENON_REQUIRE(is_float(x.type), "{}: x is f32, f16 or bf16, not {}", call.op.name, dtype_info(x.type).name);
    TENON_REQUIRE(w.shape.rank() == 2 && x.shape.rank() >= 1 && x.shape.back() == w.shape[1],
                  "{}: x {} and W {} don't fit (y = x W^T)", call.op.name, to_string(x.shape), to_string(w.shape));
    if (call.op.id == TN_OP_LINEAR_BIAS)
        TENON_REQUIRE(is_float(call.in(2).type) && call.in(2).shape == Shape{w.shape[0]},
                      "linear_bias: b {} doesn't fit W {}", to_string(call.in(2).shape), to_string(w.shape));
    Shape shape = x.shape;
    shape[shape.rank() - 1] = w.shape[0];
    out[0] = {x.type, shape};
    return {};
}

std::vector<ValueId> decompose_bias(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    return {b.add(b.node(TN_OP_LINEAR, {x[0], x[1]}), in_type(b, x[2], call.in(0).type))};
}

Status infer_experts(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0), &w = call.in(1), &ids = call.in(2);
    TENON_REQUIRE(is_float(x.type), "linear_experts: x is f32, f16 or bf16, not {}", dtype_info(x.type).name);
    TENON_REQUIRE(ids.type == DType::i32 && ids.shape.rank() == 2, "linear_experts: ids are i32 [tokens, chosen]");
    TENON_REQUIRE(x.shape.rank() == 3 && w.shape.rank() == 3 && x.shape[2] == w.shape[2] &&
                      x.shape[0] == ids.shape[0] && (x.shape[1] == 1 || x.shape[1] == ids.shape[1]),
                  "linear_experts: x {}, W {} and ids {} don't fit", to_string(x.shape), to_string(w.shape),
                  to_string(ids.shape));
    out[0] = {x.type, Shape{ids.shape[0], ids.shape[1], w.shape[1]}};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_LINEAR, infer, k_weighted},
                                      {TN_OP_LINEAR_BIAS, infer, k_weighted, decompose_bias},
                                      {TN_OP_LINEAR_EXPERTS, infer_experts, k_weighted}};

}  // namespace

std::span<const OpContract> op_contracts_linear() {
    return k_contracts;
}

}  // namespace tenon
