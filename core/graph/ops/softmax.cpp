// softmax(scale * x + mask) over the last dimension; the mask is optional and broadcast to x. A row of -inf gives
// zeros.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0);
    TENON_REQUIRE(is_float(x.type) && x.shape.rank() >= 1, "softmax takes f32, f16 or bf16 with a last dimension");
    if (call.has(1))
        TENON_REQUIRE(is_float(call.in(1).type) && call.in(1).shape == x.shape, "softmax: the mask {} doesn't fit {}",
                      to_string(call.in(1).shape), to_string(x.shape));
    out[0] = {x.type, x.shape};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_SOFTMAX, infer, k_function, nullptr, Broadcast::to_first}};

}  // namespace

std::span<const OpContract> op_contracts_softmax() {
    return k_contracts;
}

}  // namespace tenon
