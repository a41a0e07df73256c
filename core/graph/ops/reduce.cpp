// Reductions over the last dimension, which stays with size 1.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0);
    TENON_REQUIRE(is_float(x.type), "{} takes f32, f16 or bf16, not {}", call.op.name, dtype_info(x.type).name);
    TENON_REQUIRE(x.shape.rank() >= 1, "{} needs a dimension to reduce", call.op.name);
    TENON_REQUIRE(call.op.id != TN_OP_ARGMAX || x.shape.back() > 0, "argmax of an empty row");
    Shape shape = x.shape;
    shape[shape.rank() - 1] = 1;
    out[0] = {call.op.id == TN_OP_ARGMAX ? DType::i32 : x.type, shape};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_SUM, infer, k_summed},
                                      {TN_OP_MEAN, infer, k_summed},
                                      {TN_OP_MAX_REDUCE, infer, k_no_error},
                                      {TN_OP_ARGMAX, infer, k_no_error}};

}  // namespace

std::span<const OpContract> op_contracts_reduce() {
    return k_contracts;
}

}  // namespace tenon
