// gather_last: x f [..., n], ids i32 [..., k] -> [..., k], elements picked within each row.
// gather_rows: table q [n, d], ids i32 or i64 [k...] -> f32 [k..., d]; an id outside the table gives a row of zeros.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer_last(const OpCall &call, std::span<OutputSpec> out) {
    const Value &x = call.in(0), &ids = call.in(1);
    TENON_REQUIRE(is_float(x.type), "gather_last takes f32, f16 or bf16, not {}", dtype_info(x.type).name);
    TENON_REQUIRE(ids.type == DType::i32, "gather_last: ids are i32, not {}", dtype_info(ids.type).name);
    TENON_REQUIRE(x.shape.rank() >= 1 && x.shape.rank() == ids.shape.rank(),
                  "gather_last: {} and ids {} differ in rank", to_string(x.shape), to_string(ids.shape));
    for (uint32_t i = 0; i + 1 < x.shape.rank(); ++i)
        TENON_REQUIRE(x.shape[i] == ids.shape[i], "gather_last: {} and ids {} differ in their rows", to_string(x.shape),
                      to_string(ids.shape));
    out[0] = {x.type, ids.shape};
    return {};
}

Status infer_rows(const OpCall &call, std::span<OutputSpec> out) {
    const Value &table = call.in(0), &ids = call.in(1);
    TENON_REQUIRE(table.shape.rank() == 2, "gather_rows: the table has rank 2, not shape {}", to_string(table.shape));
    TENON_REQUIRE(is_index(ids.type), "gather_rows: ids are i32 or i64, not {}", dtype_info(ids.type).name);
    TENON_REQUIRE(ids.shape.rank() < TN_MAX_RANK, "gather_rows: ids have too many dimensions");
    std::vector<int64_t> sizes(ids.shape.sizes().begin(), ids.shape.sizes().end());
    sizes.push_back(table.shape[1]);
    out[0] = {DType::f32, Shape(std::span<const int64_t>(sizes))};
    return {};
}

constexpr OpContract k_contracts[] = {{TN_OP_GATHER_LAST, infer_last, k_no_error},
                                      {TN_OP_GATHER_ROWS, infer_rows, k_rounded}};

}  // namespace

std::span<const OpContract> op_contracts_gather() {
    return k_contracts;
}

}  // namespace tenon
