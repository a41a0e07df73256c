// AVX2: products with quantised activations. 8-bit products are summed in pairs (maddubs) and fours (madd), scaled once
// per block of 32. maddubs can't saturate here: 4-bit weights give at most 2 * 15 * 127, 8-bit ones 2 * 128 * 127.
#include "rows/simd_avx2.h"

namespace tenon::cpu {
namespace {

inline __m256i dot_unsigned(__m256i w, __m256i x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), _mm256_set1_epi16(1));
}

inline __m256i dot_signed(__m256i w, __m256i x) {
    return dot_unsigned(_mm256_sign_epi8(w, w), _mm256_sign_epi8(x, w));
}

// 32 nibbles of 16 bytes, low halves first.
inline __m256i nibbles(const uint8_t *at) {
    const __m128i raw = _mm_loadu_si128(reinterpret_cast<const __m128i *>(at));
    return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(raw, 4), raw), _mm256_set1_epi8(15));
}

inline __m256i bytes(const void *at) {
    return _mm256_loadu_si256(static_cast<const __m256i *>(at));
}

inline __m128 halves(const uint8_t *at, int count) {
    int word = 0;
    __builtin_memcpy(&word, at, size_t(2 * count));
    return _mm_cvtph_ps(_mm_cvtsi32_si128(word));
}

// What a block of each type is: its bytes, integer products, and (scale, minimum) times (scale, sum) of the
// activations.
struct Q41 {
    static constexpr int64_t block_bytes = 20;
    static constexpr bool has_min = true;
    static constexpr float min_factor = 1.0f;
    static __m256i products(const uint8_t *w, __m256i x) { return dot_unsigned(nibbles(w + 4), x); }
    static __m128 scales(const uint8_t *w, __m128 pair) { return _mm_mul_ps(halves(w, 2), pair); }
};

struct Q40 {
    static constexpr int64_t block_bytes = 18;
    static constexpr bool has_min = true;
    static constexpr float min_factor = -8.0f;  // an element is scale * (nibble - 8)
    static __m256i products(const uint8_t *w, __m256i x) { return dot_unsigned(nibbles(w + 2), x); }
    static __m128 scales(const uint8_t *w, __m128 pair) { return _mm_mul_ps(_mm_moveldup_ps(halves(w, 1)), pair); }
};

struct Q80 {
    static constexpr int64_t block_bytes = 34;
    static constexpr bool has_min = false;
    static constexpr float min_factor = 0.0f;
    static __m256i products(const uint8_t *w, __m256i x) { return dot_signed(bytes(w + 2), x); }
    static __m128 scales(const uint8_t *w, __m128 pair) { return _mm_mul_ss(halves(w, 1), pair); }
};

// Far enough ahead for the memory's latency at several GB/s per thread.
constexpr int64_t k_prefetch_bytes = 4096;

template <class T, int rows>
inline void dot_rows(const uint8_t *w, int64_t row_bytes, int64_t blocks, Q8Row x, float *y) {
    __m256 sum[rows];
    __m128 min[rows];
    for (int r = 0; r < rows; ++r) {
        sum[r] = _mm256_setzero_ps();
        min[r] = _mm_setzero_ps();
    }
    for (int64_t b = 0; b < blocks; ++b) {
        for (int64_t line = 0; line < rows * T::block_bytes; line += 64) {
            _mm_prefetch(reinterpret_cast<const char *>(w + k_prefetch_bytes + b * rows * T::block_bytes + line),
                         _MM_HINT_T0);
        }
        const __m256i xq = bytes(x.q + b * q8_block);
        const __m128 pair = _mm_castpd_ps(_mm_load_sd(reinterpret_cast<const double *>(x.pairs + 2 * b)));
        for (int r = 0; r < rows; ++r) {
            const uint8_t *block = w + r * row_bytes + b * T::block_bytes;
            const __m128 scales = T::scales(block, pair);
            sum[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(T::products(block, xq)), _mm256_broadcastss_ps(scales), sum[r]);
            if (T::has_min) min[r] = _mm_add_ps(min[r], scales);
        }
    }
    for (int r = 0; r < rows; ++r) {
        y[r] = sum8(sum[r]);
        if (T::has_min) y[r] += T::min_factor * _mm_cvtss_f32(_mm_movehdup_ps(min[r]));
    }
}

template <class T>
void dot_q8(const uint8_t *w, int64_t row_bytes, int64_t rows, int64_t blocks, Q8Row x, float *y) {
    for (; rows >= 4; rows -= 4, w += 4 * row_bytes, y += 4) dot_rows<T, 4>(w, row_bytes, blocks, x, y);
    for (; rows > 0; --rows, w += row_bytes, ++y) dot_rows<T, 1>(w, row_bytes, blocks, x, y);
}

template <bool has_sign, int tokens>
inline void tile_q8(const Q8Panel &w, const Q8Row *x, int64_t first, int64_t blocks, float *sums) {
    __m256 sum[panel_rows][tokens];
    for (auto &row : sum) {
        for (auto &s : row) s = _mm256_setzero_ps();
    }
    for (int64_t b = 0; b < blocks; ++b) {
        __m256i xq[tokens];
        __m256 scale[tokens];
        for (int t = 0; t < tokens; ++t) {
            xq[t] = bytes(x[t].q + (first + b) * q8_block);
            scale[t] = _mm256_broadcast_ss(x[t].pairs + 2 * (first + b));
        }
        for (int r = 0; r < panel_rows; ++r) {
            const __m256i wq = bytes(w.q[r] + b * q8_block);
            const __m256 w_scale = _mm256_broadcast_ss(&w.scale[r][b]);
            for (int t = 0; t < tokens; ++t) {
                const __m256i products = has_sign ? dot_signed(wq, xq[t]) : dot_unsigned(wq, xq[t]);
                sum[r][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products), _mm256_mul_ps(w_scale, scale[t]), sum[r][t]);
            }
        }
    }
    for (int t = 0; t < tokens; ++t) {
        if (!has_sign) {
            for (int64_t b = 0; b < blocks; b += 8) {
                const __m256i mask = tail_mask(blocks - b);
                const __m256 xs = _mm256_maskload_ps(x[t].sums + first + b, mask);
                for (int r = 0; r < panel_rows; ++r) {
                    sum[r][t] = _mm256_fmadd_ps(_mm256_maskload_ps(w.min[r] + b, mask), xs, sum[r][t]);
                }
            }
        }
        const __m128 total = sum8x4(sum[0][t], sum[1][t], sum[2][t], sum[3][t]);
        _mm_storeu_ps(sums + t * panel_rows, _mm_add_ps(_mm_loadu_ps(sums + t * panel_rows), total));
    }
}

template <bool has_sign>
void tile_q8_all(const Q8Panel &w, const Q8Row *x, int64_t tokens, int64_t first, int64_t blocks, float *sums) {
    for (; tokens >= 2; tokens -= 2, x += 2, sums += 2 * panel_rows) tile_q8<has_sign, 2>(w, x, first, blocks, sums);
    if (tokens > 0) tile_q8<has_sign, 1>(w, x, first, blocks, sums);
}

template <int tokens>
inline void tile_f32(const float *const *w, const float *const *x, int64_t n, float *sums) {
    __m256 sum[panel_rows][tokens];
    for (auto &row : sum) {
        for (auto &s : row) s = _mm256_setzero_ps();
    }
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 xv[tokens];
        for (int t = 0; t < tokens; ++t) xv[t] = _mm256_loadu_ps(x[t] + i);
        for (int r = 0; r < panel_rows; ++r) {
            const __m256 wv = _mm256_loadu_ps(w[r] + i);
            for (int t = 0; t < tokens; ++t) sum[r][t] = _mm256_fmadd_ps(wv, xv[t], sum[r][t]);
        }
    }
    if (i < n) {
        const __m256i mask = tail_mask(n - i);
        for (int r = 0; r < panel_rows; ++r) {
            const __m256 wv = _mm256_maskload_ps(w[r] + i, mask);
            for (int t = 0; t < tokens; ++t)
                sum[r][t] = _mm256_fmadd_ps(wv, _mm256_maskload_ps(x[t] + i, mask), sum[r][t]);
        }
    }
    for (int t = 0; t < tokens; ++t) {
        const __m128 total = sum8x4(sum[0][t], sum[1][t], sum[2][t], sum[3][t]);
        _mm_storeu_ps(sums + t * panel_rows, _mm_add_ps(_mm_loadu_ps(sums + t * panel_rows), total));
    }
}

}  // namespace

void dot_q8_q4_0_avx2(const uint8_t *w, int64_t row_bytes, int64_t rows, int64_t blocks, Q8Row x, float *y) {
    dot_q8<Q40>(w, row_bytes, rows, blocks, x, y);
}
void dot_q8_q4_1_avx2(const uint8_t *w, int64_t row_bytes, int64_t rows, int64_t blocks, Q8Row x, float *y) {
    dot_q8<Q41>(w, row_bytes, rows, blocks, x, y);
}
void dot_q8_q8_0_avx2(const uint8_t *w, int64_t row_bytes, int64_t rows, int64_t blocks, Q8Row x, float *y) {
    dot_q8<Q80>(w, row_bytes, rows, blocks, x, y);
}

void tile_q8_unsigned_avx2(const Q8Panel &w, const Q8Row *x, int64_t tokens, int64_t first, int64_t blocks,
                           float *sums) {
    tile_q8_all<false>(w, x, tokens, first, blocks, sums);
}
void tile_q8_signed_avx2(const Q8Panel &w, const Q8Row *x, int64_t tokens, int64_t first, int64_t blocks, float *sums) {
    tile_q8_all<true>(w, x, tokens, first, blocks, sums);
}

void tile_f32_avx2(const float *const *w, const float *const *x, int64_t tokens, int64_t n, float *sums) {
    for (; tokens >= 3; tokens -= 3, x += 3, sums += 3 * panel_rows) tile_f32<3>(w, x, n, sums);
    if (tokens == 2) tile_f32<2>(w, x, n, sums);
    if (tokens == 1) tile_f32<1>(w, x, n, sums);
}

}  // namespace tenon::cpu
