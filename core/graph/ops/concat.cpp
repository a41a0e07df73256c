// concat: inputs of one type that agree in all dimensions but `axis`, one behind the other along it.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const uint32_t axis = call.params.as<tn_params_concat>().axis;
    const Value &first = call.in(0);
    TENON_REQUIRE(axis < first.shape.rank(), "concat: axis {} of a tensor with {} dimensions", axis,
                  first.shape.rank());
    Shape shape = first.shape;
    for (size_t i = 1; i < call.inputs.size(); ++i) {
        const Value &x = call.in(i);
        Shape rest = x.shape;
        TENON_REQUIRE(x.type == first.type && rest.rank() == shape.rank(), "concat: input {} differs in type or rank",
                      i);
        rest[axis] = first.shape[axis];
        TENON_REQUIRE(rest == first.shape, "concat: input {} is {}, which doesn't fit {} along axis {}", i,
                      to_string(x.shape), to_string(first.shape), axis);
        TENON_REQUIRE(!__builtin_add_overflow(shape[axis], x.shape[axis], &shape[axis]), "concat: the sum overflows");
    }
    out[0] = {first.type, shape};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_CONCAT, infer, k_no_error}};

}  // namespace

std::span<const OpContract> op_contracts_concat() {
    return k_contracts;
}

}  // namespace tenon
