// kv_append: cache [n, h_kv, d], new f [t, h_kv, d], row i32 [t] -> the cache with row[i] set to new[i]; -1 drops a
// row.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Value &cache = call.in(0), &rows = call.in(1), &ids = call.in(2);
    TENON_REQUIRE(is_float(cache.type) || cache.type == DType::q8_0, "kv_append can't write {}",
                  dtype_info(cache.type).name);
    TENON_REQUIRE(is_float(rows.type) && ids.type == DType::i32,
                  "kv_append takes rows in f32, f16 or bf16 and ids in i32");
    TENON_REQUIRE(cache.shape.rank() == 3 && rows.shape.rank() == 3 && ids.shape == Shape{rows.shape[0]} &&
                      cache.shape[1] == rows.shape[1] && cache.shape[2] == rows.shape[2],
                  "kv_append: cache {}, rows {} and ids {} don't fit", to_string(cache.shape), to_string(rows.shape),
                  to_string(ids.shape));
    out[0] = {cache.type, cache.shape, 0};
    return {};
}

std::vector<ValueId> decompose(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    const Shape &cache = call.in(0).shape, &rows = call.in(1).shape;
    const ValueId flat = b.node(TN_OP_SCATTER_ROWS, {b.reshape(x[0], {cache[0], cache[1] * cache[2]}),
                                                     b.reshape(in_order(b, x[1]), {rows[0], rows[1] * rows[2]}), x[2]});
    return {b.reshape(flat, cache)};
}

constexpr OpContract k_contracts[] = {{TN_OP_KV_APPEND, infer, k_rounded, decompose}};

}  // namespace

std::span<const OpContract> op_contracts_kv_append() {
    return k_contracts;
}

}  // namespace tenon
