// Function types of the inner kernels, and the rows that need more than the baseline instruction set.
//
// This header is included by files compiled for one instruction set (*_avx2.cpp). It must stay free of inline functions
// and of templates, as must what those files include: the linker keeps one copy of an inline function, and if that is
// the copy with AVX2 in it, the plugin dies on a machine without.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace tenon::cpu {

// A row of activations, quantised: blocks of 32.
struct Q8Row {
    const int8_t *q;     // [32 blocks], -127 to 127
    const float *pairs;  // [blocks][2]: scale, and scale * sum(q)
    const float *sums;   // [blocks]: scale * sum(q) again
};
inline constexpr int64_t q8_block = 32;

// Four weight rows, unpacked; a stretch of at most panel_blocks blocks.
inline constexpr int64_t panel_rows = 4;
inline constexpr int64_t panel_blocks = 64;
struct Q8Panel {
    alignas(64) int8_t q[panel_rows][panel_blocks * q8_block];
    alignas(64) float scale[panel_rows][panel_blocks];
    alignas(64) float min[panel_rows][panel_blocks];
};

// dst[i] = element i of src, n elements (whole blocks), src at any address.
using DecodeFn = void (*)(const void *src, float *dst, int64_t n);

// x[n] -> Q8, n a multiple of 32: scale = max |x| / 127, q = x / scale rounded to nearest. A block that holds a NaN or
// an infinity gets scale NaN, so that every product with it is NaN.
using QuantizeQ8Fn = void (*)(const float *x, int64_t n, int8_t *q, float *pairs, float *sums);

// y[r] = row r of W times x: rows of row_bytes, the same number of blocks in each.
using DotQ8Fn = void (*)(const uint8_t *w, int64_t row_bytes, int64_t rows, int64_t blocks, Q8Row x, float *y);

// One weight row of `blocks` blocks -> q, scale, min: a row of a panel.
using UnpackFn = void (*)(const uint8_t *w, int64_t blocks, int8_t *q, float *scale, float *min);

// sums[t * 4 + r] += panel row r times blocks [first, first + blocks) of x[t].
using TileQ8Fn = void (*)(const Q8Panel &w, const Q8Row *x, int64_t tokens, int64_t first, int64_t blocks, float *sums);

// sums[t * 4 + r] += sum over i < n of w[r][i] * x[t][i].
using TileF32Fn = void (*)(const float *const *w, const float *const *x, int64_t tokens, int64_t n, float *sums);

// y[i] = f(x[i]); may work in place.
using UnaryFn = void (*)(const float *x, float *y, int64_t n);
// y[i] = act(gate[i]) * up[i]; may work in place on either.
using GatedFn = void (*)(const float *gate, const float *up, float *y, int64_t n);

// y = x * rsqrt(mean(x^2) + eps) * w over one row; w may be null; may work in place.
using RmsNormFn = void (*)(const float *x, const float *w, float *y, int64_t n, float eps);

// The largest element; -inf for n = 0. NaN counts as smaller than all.
using MaxFn = float (*)(const float *x, int64_t n);
// x[i] = exp(x[i] - max), returns their sum. With max = -inf all become 0, unless x[i] is NaN.
using ExpSumFn = float (*)(float *x, int64_t n, float max);

// acc[r][0..d) = acc[r][0..d) * keep[r] + sum over i < n of p[r][i] * v[i][0..d); rows of p are p_stride floats apart.
using WeightedSumFn = void (*)(const float *p, int64_t p_stride, const float *v, int64_t n, int64_t d, int64_t rows,
                               const float *keep, float *acc);

// table[i] = cos, table[count + i] = sin of 2 pi turns[i] * position, both times magnitude.
using RopeTableFn = void (*)(const double *turns, int64_t count, double position, float magnitude, float *table);

#define TENON_CPU_TYPE_ROWS(type, isa)                                                                                \
    void decode_##type##_##isa(const void *src, float *dst, int64_t n);                                               \
    void dot_q8_##type##_##isa(const uint8_t *w, int64_t row_bytes, int64_t rows, int64_t blocks, Q8Row x, float *y); \
    void unpack_##type##_##isa(const uint8_t *w, int64_t blocks, int8_t *q, float *scale, float *min)
TENON_CPU_TYPE_ROWS(q4_0, avx2);
TENON_CPU_TYPE_ROWS(q4_1, avx2);
TENON_CPU_TYPE_ROWS(q8_0, avx2);
#undef TENON_CPU_TYPE_ROWS
void decode_f16_avx2(const void *src, float *dst, int64_t n);
void decode_bf16_avx2(const void *src, float *dst, int64_t n);
void encode_f16_avx2(const float *x, void *dst, int64_t n);

void quantize_q8_avx2(const float *x, int64_t n, int8_t *q, float *pairs, float *sums);
void tile_q8_unsigned_avx2(const Q8Panel &w, const Q8Row *x, int64_t tokens, int64_t first, int64_t blocks,
                           float *sums);
void tile_q8_signed_avx2(const Q8Panel &w, const Q8Row *x, int64_t tokens, int64_t first, int64_t blocks, float *sums);
void tile_f32_avx2(const float *const *w, const float *const *x, int64_t tokens, int64_t n, float *sums);

void exp_avx2(const float *x, float *y, int64_t n);
void tanh_avx2(const float *x, float *y, int64_t n);
void sigmoid_avx2(const float *x, float *y, int64_t n);
void silu_avx2(const float *x, float *y, int64_t n);
void gelu_avx2(const float *x, float *y, int64_t n);
void gelu_quick_avx2(const float *x, float *y, int64_t n);
void swiglu_avx2(const float *gate, const float *up, float *y, int64_t n);
void geglu_avx2(const float *gate, const float *up, float *y, int64_t n);

void rms_norm_avx2(const float *x, const float *w, float *y, int64_t n, float eps);
float max_avx2(const float *x, int64_t n);
float exp_sum_avx2(float *x, int64_t n, float max);
void weighted_sum_avx2(const float *p, int64_t p_stride, const float *v, int64_t n, int64_t d, int64_t rows,
                       const float *keep, float *acc);
void rope_table_avx2(const double *turns, int64_t count, double position, float magnitude, float *table);

}  // namespace tenon::cpu
