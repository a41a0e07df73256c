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

constexpr OpContract unary(uint32_t id, OpLimit limit) {
    return {id, infer, limit};
}
constexpr OpContract binary(uint32_t id, OpLimit limit) {
    return {id, infer, limit, nullptr, Broadcast::all};
}

constexpr OpContract k_contracts[] = {
    binary(TN_OP_ADD, k_rounded),        binary(TN_OP_SUB, k_rounded),      binary(TN_OP_MUL, k_rounded),
    binary(TN_OP_DIV, k_rounded),        binary(TN_OP_MAX, k_no_error),     binary(TN_OP_MIN, k_no_error),
    unary(TN_OP_NEG, k_no_error),        unary(TN_OP_ABS, k_no_error),      unary(TN_OP_SQR, k_rounded),
    unary(TN_OP_SQRT, k_rounded),        unary(TN_OP_RSQRT, k_rounded),     unary(TN_OP_EXP, k_function),
    unary(TN_OP_LOG, k_function),        unary(TN_OP_SIN, k_function),      unary(TN_OP_COS, k_function),
    unary(TN_OP_TANH, k_function),       unary(TN_OP_SIGMOID, k_function),  unary(TN_OP_RELU, k_no_error),
    unary(TN_OP_SILU, k_function),       unary(TN_OP_GELU, k_function),     unary(TN_OP_GELU_ERF, k_function),
    unary(TN_OP_GELU_QUICK, k_function), unary(TN_OP_SOFTPLUS, k_function), unary(TN_OP_AFFINE, k_rounded),
    unary(TN_OP_CLAMP, k_no_error),
};

}  // namespace

std::span<const OpContract> op_contracts_elementwise() {
    return k_contracts;
}

}  // namespace tenon
