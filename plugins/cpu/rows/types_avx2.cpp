// AVX2: decoding of weights to F32 and encoding to F16, unpacking to panels, and the quantiser of activations.
#include "rows/simd_avx2.h"

namespace tenon::cpu {
namespace {

inline __m128i load16(const void *at) {
    return _mm_loadu_si128(static_cast<const __m128i *>(at));
}

inline float half_at(const uint8_t *at) {
    uint16_t half;
    __builtin_memcpy(&half, at, sizeof half);
    return _cvtsh_ss(half);
}

// dst[0..16) = scale * bytes + min
inline void scale16(__m128i bytes, __m256 scale, __m256 min, float *dst) {
    const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)));
    // Product, then sum, as the plain decoder rounds them: exact means the same weights on every row.
    _mm256_storeu_ps(dst, _mm256_add_ps(_mm256_mul_ps(low, scale), min));
    _mm256_storeu_ps(dst + 8, _mm256_add_ps(_mm256_mul_ps(high, scale), min));
}

inline void split_nibbles(const uint8_t *at, __m128i &low, __m128i &high) {
    const __m128i raw = load16(at), mask = _mm_set1_epi8(15);
    low = _mm_and_si128(raw, mask);
    high = _mm_and_si128(_mm_srli_epi16(raw, 4), mask);
}

inline void store_nibbles(const uint8_t *at, int8_t *q) {
    __m128i low, high;
    split_nibbles(at, low, high);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(q), low);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(q + 16), high);
}

}  // namespace

void decode_q4_0_avx2(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 18, dst += 32) {
        const __m256 scale = _mm256_set1_ps(half_at(at)), none = _mm256_set1_ps(-0.0f);  // x + -0 is x for every x
        const __m128i eight = _mm_set1_epi8(8);
        __m128i low, high;
        split_nibbles(at + 2, low, high);
        scale16(_mm_sub_epi8(low, eight), scale, none, dst);
        scale16(_mm_sub_epi8(high, eight), scale, none, dst + 16);
    }
}

void decode_q4_1_avx2(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 20, dst += 32) {
        const __m256 scale = _mm256_set1_ps(half_at(at)), min = _mm256_set1_ps(half_at(at + 2));
        __m128i low, high;
        split_nibbles(at + 4, low, high);
        scale16(low, scale, min, dst);
        scale16(high, scale, min, dst + 16);
    }
}

void decode_q8_0_avx2(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 34, dst += 32) {
        const __m256 scale = _mm256_set1_ps(half_at(at)), none = _mm256_set1_ps(-0.0f);
        scale16(load16(at + 2), scale, none, dst);
        scale16(load16(at + 18), scale, none, dst + 16);
    }
}

void decode_f16_avx2(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(load16(at + 2 * i)));
    for (; i < n; ++i) dst[i] = half_at(at + 2 * i);
}

void decode_bf16_avx2(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load16(at + 2 * i)), 16);
        _mm256_storeu_ps(dst + i, _mm256_castsi256_ps(wide));
    }
    for (; i < n; ++i) {
        const uint32_t bits = uint32_t(at[2 * i]) << 16 | uint32_t(at[2 * i + 1]) << 24;
        __builtin_memcpy(dst + i, &bits, sizeof bits);
    }
}

void encode_f16_avx2(const float *x, void *dst, int64_t n) {
    auto *at = static_cast<uint8_t *>(dst);
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(at + 2 * i), halves);
    }
    for (; i < n; ++i) {
        const uint16_t half = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        __builtin_memcpy(at + 2 * i, &half, sizeof half);
    }
}

void unpack_q4_0_avx2(const uint8_t *w, int64_t blocks, int8_t *q, float *scale, float *min) {
    for (int64_t b = 0; b < blocks; ++b, w += 18, q += 32) {
        store_nibbles(w + 2, q);
        scale[b] = half_at(w);
        min[b] = -8.0f * scale[b];
    }
}

void unpack_q4_1_avx2(const uint8_t *w, int64_t blocks, int8_t *q, float *scale, float *min) {
    for (int64_t b = 0; b < blocks; ++b, w += 20, q += 32) {
        store_nibbles(w + 4, q);
        scale[b] = half_at(w);
        min[b] = half_at(w + 2);
    }
}

void unpack_q8_0_avx2(const uint8_t *w, int64_t blocks, int8_t *q, float *scale, float *min) {
    for (int64_t b = 0; b < blocks; ++b, w += 34, q += 32) {
        __builtin_memcpy(q, w + 2, 32);
        scale[b] = half_at(w);
        min[b] = 0.0f;
    }
}

void quantize_q8_avx2(const float *x, int64_t n, int8_t *q, float *pairs, float *sums) {
    const __m256 sign = _mm256_set1_ps(-0.0f), infinity = _mm256_set1_ps(__builtin_inff());
    for (int64_t b = 0; b < n / 32; ++b, x += 32, q += 32) {
        __m256 v[4], largest = _mm256_setzero_ps(), bad = _mm256_setzero_ps();
        for (int i = 0; i < 4; ++i) {
            v[i] = _mm256_loadu_ps(x + 8 * i);
            const __m256 magnitude = _mm256_andnot_ps(sign, v[i]);
            largest = _mm256_max_ps(magnitude, largest);
            bad = _mm256_or_ps(bad, _mm256_cmp_ps(magnitude, infinity, _CMP_NLT_UQ));
        }
        __m128 m = _mm_max_ps(_mm256_castps256_ps128(largest), _mm256_extractf128_ps(largest, 1));
        m = _mm_max_ps(m, _mm_movehl_ps(m, m));
        const float most = _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
        const bool finite = _mm256_movemask_ps(bad) == 0;
        const float scale = finite ? most / 127.0f : __builtin_nanf("");
        const float inverse = finite && scale > 0 ? 127.0f / most : 0.0f;
        __m256i rounded[4], total = _mm256_setzero_si256();
        for (int i = 0; i < 4; ++i) {
            // 0 * inf (zeros beside subnormals) and inf * 0 are NaN, which the comparison turns to 0.
            __m256 scaled = _mm256_mul_ps(v[i], _mm256_set1_ps(inverse));
            scaled = _mm256_and_ps(scaled, _mm256_cmp_ps(scaled, scaled, _CMP_ORD_Q));
            scaled = _mm256_max_ps(_mm256_min_ps(scaled, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-127.0f));
            rounded[i] = _mm256_cvtps_epi32(scaled);
            total = _mm256_add_epi32(total, rounded[i]);
        }
        const __m256i low = _mm256_packs_epi32(rounded[0], rounded[1]),
                      high = _mm256_packs_epi32(rounded[2], rounded[3]);
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(q),
                            _mm256_permutevar8x32_epi32(_mm256_packs_epi16(low, high), order));
        __m128i t = _mm_add_epi32(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
        t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
        t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1));
        pairs[2 * b] = scale;
        pairs[2 * b + 1] = sums[b] = scale * float(_mm_cvtsi128_si32(t));
    }
}

}  // namespace tenon::cpu
