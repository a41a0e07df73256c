/* The standard ops' ids and parameters. The contracts: shapes are row-major, f means f32, f16 or bf16, q any type of
 * dtypes.def; sums are taken in f32. What each op computes stands beside its params, or in one line below.
 *
 *   copy            x (any strides) -> contiguous, type as the output says
 *   gather_last     x f [..., n], ids i32 [..., k] -> [..., k]: y[..., j] = x[..., ids[..., j]]
 *   gather_rows     table q [n, d], ids i32 or i64 [k...] -> f [k..., d]; an id outside [0, n) gives a row of zeros
 *   scatter_rows    dst [n, d], rows f [k, d], ids i32 or i64 [k] -> dst; -1 (or any id outside) drops the row; of equal
 *                   ids the last wins
 *   add ... min     a, b of the output's rank after broadcasting (stride 0)
 *   linear          x f [..., in], W q [out, in] -> f [..., out]: y = x W^T
 *   matmul          a f [..., m, k], b f [..., n, k] -> [..., m, n]: a b^T; batch dimensions broadcast, also by whole
 *                   multiples: batch index i of the output reads i / (out / b) of b
 *   linear_experts  x f [t, e or 1, in], W q [experts, out, in], ids i32 [t, e] -> f [t, e, out]
 *   sum, mean, max_reduce   over the last dimension, which stays with size 1
 *   argmax          last dimension -> i32, of size 1; ties: the lowest index
 *   linear_bias     x, W, b f [out]: linear + b
 *   swiglu, geglu, reglu    gate, up -> silu | gelu (tanh form) | relu (gate) * up
 *   kv_append       cache [n, h_kv, d], new f [t, h_kv, d], row i32 [t] -> cache with row[i] set to new[i]; -1 drops
 */
#ifndef TENON_OPS_H
#define TENON_OPS_H

#include "tenon/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* TN_OP_ADD and so on. Names for constants only: no field or argument of the ABI has an enumeration's type. */
enum {
#define TN_OP(id, NAME, name, KIND, min_inputs, max_inputs, outputs, PARAMS, ALIAS) TN_OP_##NAME = id,
#include "tenon/ops.def"
#undef TN_OP
    TN_OP_STANDARD_END
};
#define TN_OP_VENDOR_FIRST 0x80000000u

/* TN_TYPE_ID_F32 and so on. */
enum {
#define TN_DTYPE(id, NAME, name, block_elements, block_bytes) TN_TYPE_ID_##NAME = id,
#include "tenon/dtypes.def"
#undef TN_DTYPE
    TN_TYPE_ID_END
};

typedef struct tn_params_concat {
    TN_HEAD;
    uint32_t axis; /* from the outermost, 0 */
    uint32_t reserved;
} tn_params_concat;

typedef struct tn_params_affine { /* y = a x + b */
    TN_HEAD;
    float a, b;
} tn_params_affine;

typedef struct tn_params_clamp { /* y = min(max(x, lo), hi) */
    TN_HEAD;
    float lo, hi;
} tn_params_clamp;

typedef struct tn_params_top_k { /* x [..., n] -> i32 [..., k]: indices of the k largest, falling; ties: lowest first */
    TN_HEAD;
    uint32_t k;
    uint32_t reserved;
} tn_params_top_k;

typedef struct tn_params_softmax { /* x, optional mask (broadcast) -> softmax(scale x + mask) over the last dimension;
                                    * a row of -inf gives zeros */
    TN_HEAD;
    float scale;
    uint32_t reserved;
} tn_params_softmax;

/* q_pos i32 [t], seq i32 [t], kv_start i32 [s], kv_len i32 [s] -> f32 [t, s * capacity]. Column s' * capacity + c stands
 * for sequence s' and its position p >= kv_start[s'] with p mod capacity = c; it is 0 where token i may look, that is where
 * seq[i] = s', p < kv_start[s'] + kv_len[s'], p <= q_pos[i], and p > q_pos[i] - window if window > 0; elsewhere -inf.
 * seq -1 marks a padding token, which looks nowhere. */
typedef struct tn_params_attention_mask {
    TN_HEAD;
    uint32_t capacity; /* positions that the cache holds for each sequence */
    uint32_t window;   /* 0: none */
} tn_params_attention_mask;

/* rms_norm:   x f [..., d], w f [d] optional -> x / sqrt(mean(x^2) + eps) * w
 * layer_norm: x f [..., d], w, b f [d] optional -> (x - mean) / sqrt(var + eps) * w + b */
typedef struct tn_params_norm {
    TN_HEAD;
    float eps;
    uint32_t reserved;
} tn_params_norm;

#define TN_ROPE_ADJACENT 0u /* pairs (2i, 2i + 1) */
#define TN_ROPE_HALVES 1u   /* pairs (i, i + dims / 2) */

/* x f [t, h, d], pos i32 [t], factors f32 [dims / 2] optional -> x with each pair i < dims / 2 turned by
 * pos * base^(-2i / dims) / factors[i]; elements from dims on are copied. With a scale (1 = none) positions are
 * interpolated, with ext_factor > 0 by YaRN (Peng et al. 2023, section 3): angles blend between interpolated and original
 * ones along the ramp that beta_fast and beta_slow give at original_context, and both sine and cosine are multiplied by
 * attn_factor * (1 + 0.1 ln(1 / scale)). Without YaRN they are multiplied by attn_factor (1 = none). */
typedef struct tn_params_rope {
    TN_HEAD;
    uint32_t dims;    /* even, <= d */
    uint32_t pairing; /* TN_ROPE_ */
    float base;
    float scale; /* of positions: 1 / 4 stretches the context four times */
    float ext_factor, attn_factor, beta_fast, beta_slow;
    uint32_t original_context; /* tokens; only YaRN reads it */
    uint32_t reserved;
} tn_params_rope;

/* q f [t, h, d], K cache [n, h_kv, d], V cache [n, h_kv, d_v], q_pos i32 [t], seq i32 [t], blocks i32 [s, b],
 * kv_start i32 [s], kv_len i32 [s], sinks f32 [h] optional -> f [t, h, d_v].
 * The cache of sequence s holds capacity = b * block_rows positions; position p lies in slot c = p mod capacity, which is
 * row blocks[s, c / block_rows] * block_rows + c mod block_rows. Token i of sequence seq[i] looks at the positions that
 * attention_mask names for it: weights = softmax(softcap(scale q K^T)), with softcap(x) = cap tanh(x / cap) if cap > 0, and
 * a sink's logit in the sum of its head. Head j reads head j / (h / h_kv) of the caches. seq -1 gives zeros. */
typedef struct tn_params_attention {
    TN_HEAD;
    float scale;
    float softcap;       /* 0: none */
    uint32_t window;     /* 0: none */
    uint32_t block_rows; /* > 0 */
} tn_params_attention;

#define TN_ROUTE_SOFTMAX 0u
#define TN_ROUTE_SIGMOID 1u

/* logits f [t, experts] -> ids i32 [t, k] (top_k), weights f32 [t, k]: the scores of those; with normalise they sum to 1 */
typedef struct tn_params_route {
    TN_HEAD;
    uint32_t k;
    uint32_t scoring;   /* TN_ROUTE_ */
    uint32_t normalise; /* 0 or 1 */
    uint32_t reserved;
} tn_params_route;

#define TN_SIZE_PARAMS_NONE ((uint64_t)0)
#define TN_SIZE_PARAMS_CONCAT TN_END(tn_params_concat, reserved)
#define TN_SIZE_PARAMS_AFFINE TN_END(tn_params_affine, b)
#define TN_SIZE_PARAMS_CLAMP TN_END(tn_params_clamp, hi)
#define TN_SIZE_PARAMS_TOP_K TN_END(tn_params_top_k, reserved)
#define TN_SIZE_PARAMS_SOFTMAX TN_END(tn_params_softmax, reserved)
#define TN_SIZE_PARAMS_ATTENTION_MASK TN_END(tn_params_attention_mask, window)
#define TN_SIZE_PARAMS_NORM TN_END(tn_params_norm, reserved)
#define TN_SIZE_PARAMS_ROPE TN_END(tn_params_rope, reserved)
#define TN_SIZE_PARAMS_ATTENTION TN_END(tn_params_attention, block_rows)
#define TN_SIZE_PARAMS_ROUTE TN_END(tn_params_route, reserved)

#ifdef __cplusplus
}
#endif
#endif
