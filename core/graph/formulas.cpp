// The ops that models are written with, as functions.
#include "tenon/graph.h"

namespace tenon {

ValueId GraphBuilder::copy(ValueId x, std::optional<DType> type, std::string name) {
    return add_one(find_standard_op(TN_OP_COPY), {&x, 1}, {}, name, type);
}

ValueId GraphBuilder::add(ValueId a, ValueId b, std::string name) {
    return add_one(TN_OP_ADD, {a, b}, {}, name);
}

ValueId GraphBuilder::mul(ValueId a, ValueId b, std::string name) {
    return add_one(TN_OP_MUL, {a, b}, {}, name);
}

ValueId GraphBuilder::affine(ValueId x, float a, float b, std::string name) {
    tn_params_affine params{};
    params.struct_size = TN_SIZE_PARAMS_AFFINE, params.a = a, params.b = b;
    return add_one(TN_OP_AFFINE, {x}, ParamView::of(params), name);
}

ValueId GraphBuilder::linear(ValueId x, ValueId w, ValueId b, std::string name) {
    if (b == k_no_value) return add_one(TN_OP_LINEAR, {x, w}, {}, name);
    return add_one(TN_OP_LINEAR_BIAS, {x, w, b}, {}, name);
}

ValueId GraphBuilder::rms_norm(ValueId x, ValueId w, float eps, std::string name) {
    tn_params_norm params{};
    params.struct_size = TN_SIZE_PARAMS_NORM, params.eps = eps;
    return add_one(TN_OP_RMS_NORM, {x, w}, ParamView::of(params), name);
}

ValueId GraphBuilder::gather_rows(ValueId table, ValueId ids, std::string name) {
    return add_one(TN_OP_GATHER_ROWS, {table, ids}, {}, name);
}

ValueId GraphBuilder::rope(ValueId x, ValueId pos, ValueId factors, tn_params_rope params, std::string name) {
    params.struct_size = TN_SIZE_PARAMS_ROPE;
    return add_one(TN_OP_ROPE, {x, pos, factors}, ParamView::of(params), name);
}

ValueId GraphBuilder::swiglu(ValueId gate, ValueId up, std::string name) {
    return add_one(TN_OP_SWIGLU, {gate, up}, {}, name);
}

ValueId GraphBuilder::kv_append(ValueId cache, ValueId rows, ValueId row_ids, std::string name) {
    return add_one(TN_OP_KV_APPEND, {cache, rows, row_ids}, {}, name);
}

ValueId GraphBuilder::attention(ValueId q, ValueId k_cache, ValueId v_cache, const KvView &kv, ValueId sinks,
                                tn_params_attention params, std::string name) {
    params.struct_size = TN_SIZE_PARAMS_ATTENTION;
    return add_one(TN_OP_ATTENTION, {q, k_cache, v_cache, kv.q_pos, kv.seq, kv.blocks, kv.kv_start, kv.kv_len, sinks},
                   ParamView::of(params), name);
}

}  // namespace tenon
