// The ops that models are written with, as functions.
#include <fmt/format.h>

#include "graph/hash.h"
#include "graph/op_contract.h"
#include "tenon/graph.h"

namespace tenon {

ValueId GraphBuilder::copy(ValueId x, std::optional<DType> type, std::string name) {
    const auto outputs = add_node(find_op(ops_, TN_OP_COPY), {x}, {}, std::move(name), type);
    return outputs.empty() ? k_no_value : outputs[0];
}

ValueId GraphBuilder::add(ValueId a, ValueId b, std::string name) {
    return node(TN_OP_ADD, {a, b}, {}, std::move(name));
}

ValueId GraphBuilder::mul(ValueId a, ValueId b, std::string name) {
    return node(TN_OP_MUL, {a, b}, {}, std::move(name));
}

ValueId GraphBuilder::affine(ValueId x, float a, float b, std::string name) {
    tn_params_affine params{};
    params.struct_size = TN_SIZE_PARAMS_AFFINE, params.a = a, params.b = b;
    return node(TN_OP_AFFINE, {x}, ParamBlob::of(params), std::move(name));
}

ValueId GraphBuilder::linear(ValueId x, ValueId w, ValueId b, std::string name) {
    if (b == k_no_value) return node(TN_OP_LINEAR, {x, w}, {}, std::move(name));
    return node(TN_OP_LINEAR_BIAS, {x, w, b}, {}, std::move(name));
}

ValueId GraphBuilder::rms_norm(ValueId x, ValueId w, float eps, std::string name) {
    tn_params_norm params{};
    params.struct_size = TN_SIZE_PARAMS_NORM, params.eps = eps;
    return node(TN_OP_RMS_NORM, {x, w}, ParamBlob::of(params), std::move(name));
}

ValueId GraphBuilder::gather_rows(ValueId table, ValueId ids, std::string name) {
    return node(TN_OP_GATHER_ROWS, {table, ids}, {}, std::move(name));
}

ValueId GraphBuilder::rope(ValueId x, ValueId pos, ValueId factors, tn_params_rope params, std::string name) {
    params.struct_size = TN_SIZE_PARAMS_ROPE;
    return node(TN_OP_ROPE, {x, pos, factors}, ParamBlob::of(params), std::move(name));
}

ValueId GraphBuilder::swiglu(ValueId gate, ValueId up, std::string name) {
    return node(TN_OP_SWIGLU, {gate, up}, {}, std::move(name));
}

ValueId GraphBuilder::kv_append(ValueId cache, ValueId rows, ValueId row_ids, std::string name) {
    return node(TN_OP_KV_APPEND, {cache, rows, row_ids}, {}, std::move(name));
}

ValueId GraphBuilder::attention(ValueId q, ValueId k_cache, ValueId v_cache, const KvView &kv, ValueId sinks,
                                tn_params_attention params, std::string name) {
    params.struct_size = TN_SIZE_PARAMS_ATTENTION;
    return node(TN_OP_ATTENTION, {q, k_cache, v_cache, kv.q_pos, kv.seq, kv.blocks, kv.kv_start, kv.kv_len, sinks},
                ParamBlob::of(params), std::move(name));
}

}  // namespace tenon
