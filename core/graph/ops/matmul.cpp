// matmul: a f [..., m, k], b f [..., n, k] -> [..., m, n]: a b^T. Batch dimensions broadcast, also by whole multiples:
// of grouped heads, a's h heads read b's h / g.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &a = call.in(0), &b = call.in(1);
    TENON_REQUIRE(is_float(a.type) && is_float(b.type), "matmul takes f32, f16 or bf16");
    const uint32_t rank = a.shape.rank();
    TENON_REQUIRE(rank >= 2 && rank == b.shape.rank() && a.shape[rank - 1] == b.shape[rank - 1],
                  "matmul: a {} and b {} don't fit (a b^T)", to_string(a.shape), to_string(b.shape));
    Shape shape = a.shape;
    shape[rank - 1] = b.shape[rank - 2];
    for (uint32_t i = 0; i + 2 < rank; ++i) {
        const int64_t big = std::max(a.shape[i], b.shape[i]), small = std::min(a.shape[i], b.shape[i]);
        TENON_REQUIRE(small > 0 ? big % small == 0 : big == small, "matmul: batch sizes {} and {} aren't multiples",
                      a.shape[i], b.shape[i]);
        shape[i] = big;
    }
    out[0] = {a.type, shape};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_MATMUL, infer, k_product}};

}  // namespace

std::span<const OpContract> op_contracts_matmul() {
    return k_contracts;
}

}  // namespace tenon
