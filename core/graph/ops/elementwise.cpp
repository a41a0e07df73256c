// Unary and binary elementwise ops: one contract for the family. Inputs of binary ops are broadcast as in NumPy.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    for (const Value *input : call.inputs)
        TENON_REQUIRE(is_float(input->type), "{} takes f32, f16 or bf16, not {}", call.op.name,
                      dtype_info(input->type).name);
    if (call.inputs.size() == 2)
        TENON_REQUIRE(call.in(0).type == call.in(1).type, "{} takes two inputs of one type, not {} and {}",
                      call.op.name, dtype_info(call.in(0).type).name, dtype_info(call.in(1).type).name);
    out[0] = {call.in(0).type, call.in(0).shape};
    return {};
}

constexpr OpContract unary(uint32_t id) {
    return {id, infer};
}
constexpr OpContract binary(uint32_t id) {
    return {id, infer, nullptr, Broadcast::all};
}

constexpr OpContract k_contracts[] = {
    binary(TN_OP_ADD),     binary(TN_OP_SUB),       binary(TN_OP_MUL),     binary(TN_OP_DIV),   binary(TN_OP_MAX),
    binary(TN_OP_MIN),     unary(TN_OP_NEG),        unary(TN_OP_ABS),      unary(TN_OP_SQR),    unary(TN_OP_SQRT),
    unary(TN_OP_RSQRT),    unary(TN_OP_EXP),        unary(TN_OP_LOG),      unary(TN_OP_SIN),    unary(TN_OP_COS),
    unary(TN_OP_TANH),     unary(TN_OP_SIGMOID),    unary(TN_OP_RELU),     unary(TN_OP_SILU),   unary(TN_OP_GELU),
    unary(TN_OP_GELU_ERF), unary(TN_OP_GELU_QUICK), unary(TN_OP_SOFTPLUS), unary(TN_OP_AFFINE), unary(TN_OP_CLAMP),
};

}  // namespace

std::span<const OpContract> op_contracts_elementwise() {
    return k_contracts;
}

}  // namespace tenon
