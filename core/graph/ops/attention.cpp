// attention over a paged KV cache, and the mask that its decomposition needs. Contracts in ops.h.
#include "graph/op_contract.h"

namespace tenon {
namespace {

Status infer_mask(const OpCall &call, std::span<OutputSpec> out) {
    const Value &q_pos = call.in(0), &seq = call.in(1), &start = call.in(2), &len = call.in(3);
    for (const Value *input : call.inputs)
        TENON_REQUIRE(input->type == DType::i32 && input->shape.rank() == 1, "attention_mask takes i32 of rank 1");
    TENON_REQUIRE(q_pos.shape == seq.shape && start.shape == len.shape,
                  "attention_mask: q_pos {} and seq {}, or kv_start {} "
                  "and kv_len {} differ",
                  to_string(q_pos.shape), to_string(seq.shape), to_string(start.shape), to_string(len.shape));
    int64_t columns;
    TENON_REQUIRE(
        !__builtin_mul_overflow(start.shape[0], int64_t(call.params.as<tn_params_attention_mask>().capacity), &columns),
        "attention_mask: too many columns");
    out[0] = {DType::f32, Shape{q_pos.shape[0], columns}};
    return {};
}

enum Input { Q, K, V, Q_POS, SEQ, BLOCKS, KV_START, KV_LEN, SINKS };

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    const Shape &q = call.in(Q).shape, &k = call.in(K).shape, &v = call.in(V).shape, &blocks = call.in(BLOCKS).shape;
    const auto &params = call.params.as<tn_params_attention>();
    TENON_REQUIRE(is_float(call.in(Q).type), "attention: q is f32, f16 or bf16, not {}",
                  dtype_info(call.in(Q).type).name);
    TENON_REQUIRE(q.rank() == 3 && k.rank() == 3 && v.rank() == 3 && q[2] == k[2] && k[0] == v[0] && k[1] == v[1],
                  "attention: q {}, K {} and V {} don't fit", to_string(q), to_string(k), to_string(v));
    TENON_REQUIRE(k[1] > 0 && q[1] % k[1] == 0, "attention: {} heads aren't a multiple of {} KV heads", q[1], k[1]);
    for (size_t i : {Q_POS, SEQ, BLOCKS, KV_START, KV_LEN})
        TENON_REQUIRE(call.in(i).type == DType::i32, "attention: input {} is i32, not {}", i,
                      dtype_info(call.in(i).type).name);
    TENON_REQUIRE(call.in(Q_POS).shape == Shape{q[0]} && call.in(SEQ).shape == Shape{q[0]},
                  "attention: q_pos and seq hold one word for each of {} tokens", q[0]);
    TENON_REQUIRE(
        blocks.rank() == 2 && call.in(KV_START).shape == Shape{blocks[0]} && call.in(KV_LEN).shape == Shape{blocks[0]},
        "attention: blocks {}, kv_start {} and kv_len {} don't agree in sequences", to_string(blocks),
        to_string(call.in(KV_START).shape), to_string(call.in(KV_LEN).shape));
    TENON_REQUIRE(params.block_rows > 0 && k[0] % params.block_rows == 0,
                  "attention: a cache of {} rows isn't whole blocks of {}", k[0], params.block_rows);
    if (call.has(SINKS))
        TENON_REQUIRE(call.in(SINKS).type == DType::f32 && call.in(SINKS).shape == Shape{q[1]},
                      "attention: sinks are f32, one a head");
    out[0] = {call.in(Q).type, Shape{q[0], q[1], v[2]}};
    return {};
}

// The cache's blocks of all sequences one behind the other: [n, h_kv, d] -> [h_kv, s * capacity, d], a view of the
// gathered.
ValueId gather_heads(GraphBuilder &b, ValueId cache, const Shape &shape, ValueId blocks, int64_t block_rows) {
    const int64_t slots = b.value(blocks).shape[0] * b.value(blocks).shape[1] * block_rows;
    const ValueId table = b.reshape(cache, {shape[0] / block_rows, block_rows * shape[1] * shape[2]});
    const ValueId rows = b.reshape(b.gather_rows(table, blocks), {slots, shape[1], shape[2]});
    return b.permute(rows, std::array<uint32_t, 3>{1, 0, 2});
}

std::vector<ValueId> decompose(GraphBuilder &b, const OpCall &call, std::span<const ValueId> x) {
    const auto &params = call.params.as<tn_params_attention>();
    const Shape &q = call.in(Q).shape;
    const ValueId heads = b.permute(x[Q], std::array<uint32_t, 3>{1, 0, 2});  // [h, t, d]
    const ValueId keys = gather_heads(b, x[K], call.in(K).shape, x[BLOCKS], params.block_rows);
    const ValueId values = gather_heads(b, x[V], call.in(V).shape, x[BLOCKS], params.block_rows);
    const ValueId values_t = b.copy(b.permute(values, std::array<uint32_t, 3>{0, 2, 1}));  // [h_kv, d_v, s * capacity]

    tn_params_attention_mask mask_params{};
    mask_params.struct_size = TN_SIZE_PARAMS_ATTENTION_MASK;
    mask_params.capacity = uint32_t(call.in(BLOCKS).shape[1] * params.block_rows);
    mask_params.window = params.window;
    ValueId mask = b.node(TN_OP_ATTENTION_MASK, {x[Q_POS], x[SEQ], x[KV_START], x[KV_LEN]}, ParamBlob::of(mask_params));

    ValueId scores = b.node(TN_OP_MATMUL, {heads, keys});  // [h, t, s * capacity]
    float scale = params.scale;
    if (params.softcap > 0) {
        scores = b.affine(b.node(TN_OP_TANH, {b.affine(scores, scale / params.softcap, 0)}), params.softcap, 0);
        scale = 1;
    }
    tn_params_softmax softmax{};
    softmax.struct_size = TN_SIZE_PARAMS_SOFTMAX;
    softmax.scale = scale;
    ValueId weights;
    if (call.has(SINKS)) {
        // The sink is one more column that every token may look at; its weight is then left out.
        const int64_t slots = b.value(scores).shape[2];
        tn_params_concat concat{};
        concat.struct_size = TN_SIZE_PARAMS_CONCAT, concat.axis = 2;
        softmax.scale = 1;
        const ValueId sinks = b.copy(b.broadcast(b.reshape(in_order(b, x[SINKS]), {q[1], 1, 1}), {q[1], q[0], 1}));
        const ValueId masked = b.add(b.affine(scores, scale, 0), mask);
        const ValueId with_sinks = b.node(TN_OP_CONCAT, {masked, sinks}, ParamBlob::of(concat));
        weights = b.slice(b.node(TN_OP_SOFTMAX, {with_sinks}, ParamBlob::of(softmax)), 2, 0, slots);
        // A padding token has only its sink to look at: its weights are zeros, as they must be.
    } else {
        weights = b.node(TN_OP_SOFTMAX, {scores, mask}, ParamBlob::of(softmax));
    }
    const ValueId mixed = b.node(TN_OP_MATMUL, {weights, values_t});  // [h, t, d_v]
    return {b.copy(b.permute(mixed, std::array<uint32_t, 3>{1, 0, 2}))};
}

constexpr OpContract k_contracts[] = {{TN_OP_ATTENTION_MASK, infer_mask, k_no_error},
                                      {TN_OP_ATTENTION, infer, k_product, decompose}};

}  // namespace

std::span<const OpContract> op_contracts_attention() {
    return k_contracts;
}

}  // namespace tenon
