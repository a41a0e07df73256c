// swiglu, geglu, reglu: gate, up f [...] of one shape -> act(gate) * up (Shazeer 2020), with silu, gelu (tanh form),
// relu.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &gate = call.in(0), &up = call.in(1);
    TENON_REQUIRE(is_float(gate.type) && gate.type == up.type, "{} takes two inputs of one type: f32, f16 or bf16",
                  call.op.name);
    TENON_REQUIRE(gate.shape == up.shape, "{}: gate {} and up {} differ", call.op.name, to_string(gate.shape),
                  to_string(up.shape));
    out[0] = {gate.type, gate.shape};
    return {};
}

std::vector<ValueId> decompose(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    const uint32_t act = call.op.id == TN_OP_SWIGLU ? TN_OP_SILU : call.op.id == TN_OP_GEGLU ? TN_OP_GELU : TN_OP_RELU;
    return {b.mul(b.node(act, {x[0]}), x[1])};
}

constexpr OpContract k_contracts[] = {{TN_OP_SWIGLU, infer, k_function, decompose},
                                      {TN_OP_GEGLU, infer, k_function, decompose},
                                      {TN_OP_REGLU, infer, k_function, decompose}};

}  // namespace

std::span<const OpContract> op_contracts_gated() {
    return k_contracts;
}

}  // namespace tenon
