// copy: any strides to contiguous, in the type that is asked for (default: the same).
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0);
    const DType type = call.requested_type.value_or(x.type);
    TENON_REQUIRE(canonical_bytes(type, x.shape.sizes()), "copy: {} doesn't divide into blocks of {}",
                  to_string(x.shape), dtype_info(type).name);
    out[0] = {type, x.shape};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_COPY, infer, k_rounded}};

}  // namespace

std::span<const OpContract> op_contracts_copy() {
    return k_contracts;
}

}  // namespace tenon
