// scatter_rows: dst [n, d] (f32, f16, bf16, q8_0), rows f [k, d], ids i32 or i64 [k] -> dst with row ids[i] set to
// rows[i]. An id outside dst drops its row; of equal ids the last wins.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &dst = call.in(0), &rows = call.in(1), &ids = call.in(2);
    TENON_REQUIRE(is_float(dst.type) || dst.type == DType::q8_0, "scatter_rows can't write {}",
                  dtype_info(dst.type).name);
    TENON_REQUIRE(is_float(rows.type), "scatter_rows: rows are f32, f16 or bf16, not {}", dtype_info(rows.type).name);
    TENON_REQUIRE(is_index(ids.type) && ids.shape.rank() == 1, "scatter_rows: ids are i32 or i64 of rank 1");
    TENON_REQUIRE(dst.shape.rank() == 2 && rows.shape.rank() == 2 && dst.shape[1] == rows.shape[1] &&
                      rows.shape[0] == ids.shape[0],
                  "scatter_rows: dst {}, rows {} and ids {} don't fit", to_string(dst.shape), to_string(rows.shape),
                  to_string(ids.shape));
    out[0] = {dst.type, dst.shape, 0};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_SCATTER_ROWS, infer, k_rounded}};

}  // namespace

std::span<const OpContract> op_contracts_scatter_rows() {
    return k_contracts;
}

}  // namespace tenon
