// top_k: x f [..., n] -> i32 [..., k], the indices of the k largest in falling order; ties: the lowest index first.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0);
    const uint32_t k = call.params.as<tn_params_top_k>().k;
    TENON_REQUIRE(is_float(x.type) && x.shape.rank() >= 1, "top_k takes f32, f16 or bf16 with a last dimension");
    TENON_REQUIRE(int64_t(k) <= x.shape.back(), "top_k: k is {}, but a row has {} elements", k, x.shape.back());
    Shape shape = x.shape;
    shape[shape.rank() - 1] = k;
    out[0] = {DType::i32, shape};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_TOP_K, infer, k_no_error}};

}  // namespace

std::span<const OpContract> op_contracts_top_k() {
    return k_contracts;
}

}  // namespace tenon
