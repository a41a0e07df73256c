// AVX2: elementwise functions, norms, the parts of softmax and attention, rotary tables.
#include "rows/simd_avx2.h"

namespace tenon::cpu {
namespace {

template <__m256 (*f)(__m256)>
inline void unary(const float *x, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, f(_mm256_loadu_ps(x + i)));
    if (i < n) {
        const __m256i mask = tail_mask(n - i);
        _mm256_maskstore_ps(y + i, mask, f(_mm256_maskload_ps(x + i, mask)));
    }
}

template <__m256 (*f)(__m256)>
inline void gated(const float *gate, const float *up, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(f(_mm256_loadu_ps(gate + i)), _mm256_loadu_ps(up + i)));
    }
    if (i < n) {
        const __m256i mask = tail_mask(n - i);
        const __m256 v = _mm256_mul_ps(f(_mm256_maskload_ps(gate + i, mask)), _mm256_maskload_ps(up + i, mask));
        _mm256_maskstore_ps(y + i, mask, v);
    }
}

// acc[rows][8 vectors] over all positions, so that each value of V is loaded once for the rows.
template <int rows, int vectors>
inline void weighted(const float *p, int64_t p_stride, const float *v, int64_t n, int64_t d, __m256i mask,
                     const float *keep, float *acc) {
    __m256 sum[rows][vectors];
    for (int r = 0; r < rows; ++r) {
        const __m256 factor = _mm256_broadcast_ss(keep + r);
        for (int c = 0; c < vectors; ++c) {
            sum[r][c] = _mm256_mul_ps(_mm256_maskload_ps(acc + r * d + 8 * c, mask), factor);
        }
    }
    for (int64_t i = 0; i < n; ++i) {
        __m256 value[vectors];
        for (int c = 0; c < vectors; ++c) value[c] = _mm256_maskload_ps(v + i * d + 8 * c, mask);
        for (int r = 0; r < rows; ++r) {
            const __m256 weight = _mm256_broadcast_ss(p + r * p_stride + i);
            for (int c = 0; c < vectors; ++c) sum[r][c] = _mm256_fmadd_ps(weight, value[c], sum[r][c]);
        }
    }
    for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < vectors; ++c) _mm256_maskstore_ps(acc + r * d + 8 * c, mask, sum[r][c]);
    }
}

template <int rows>
inline void weighted_rows(const float *p, int64_t p_stride, const float *v, int64_t n, int64_t d, const float *keep,
                          float *acc) {
    int64_t j = 0;
    for (; j + 16 <= d; j += 16) weighted<rows, 2>(p, p_stride, v + j, n, d, _mm256_set1_epi32(-1), keep, acc + j);
    for (; j < d; j += 8) weighted<rows, 1>(p, p_stride, v + j, n, d, tail_mask(d - j), keep, acc + j);
}

// Sine and cosine of 2 pi t in double, for |t| of any size: the quarter turns are taken off exactly, the rest is at
// most pi / 4 and goes through the series (errors below 1e-10).
inline void sine_cosine(__m256d t, __m256d &sine, __m256d &cosine) {
    constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    t = _mm256_sub_pd(t, _mm256_round_pd(t, nearest));
    const __m256d quarters = _mm256_round_pd(_mm256_mul_pd(t, _mm256_set1_pd(4.0)), nearest);
    const __m256d r =
        _mm256_mul_pd(_mm256_fnmadd_pd(quarters, _mm256_set1_pd(0.25), t), _mm256_set1_pd(6.283185307179586));
    const __m256d z = _mm256_mul_pd(r, r);
    __m256d s = _mm256_set1_pd(-1.0 / 39916800), c = _mm256_set1_pd(-1.0 / 3628800);
    const double sine_terms[] = {1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6};
    const double cosine_terms[] = {1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5};
    for (int i = 0; i < 4; ++i) {
        s = _mm256_fmadd_pd(s, z, _mm256_set1_pd(sine_terms[i]));
        c = _mm256_fmadd_pd(c, z, _mm256_set1_pd(cosine_terms[i]));
    }
    s = _mm256_fmadd_pd(_mm256_mul_pd(s, z), r, r);
    c = _mm256_fmadd_pd(c, z, _mm256_set1_pd(1.0));
    const __m256i q = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(quarters)), two = _mm256_set1_epi64x(2);
    const __m256d swap = _mm256_castsi256_pd(_mm256_slli_epi64(q, 63));
    const __m256i after = _mm256_add_epi64(q, _mm256_set1_epi64x(1));
    const __m256d s_sign = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_and_si256(q, two), 62));
    const __m256d c_sign = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_and_si256(after, two), 62));
    sine = _mm256_xor_pd(_mm256_blendv_pd(s, c, swap), s_sign);
    cosine = _mm256_xor_pd(_mm256_blendv_pd(c, s, swap), c_sign);
}

}  // namespace

void exp_avx2(const float *x, float *y, int64_t n) {
    unary<exp8>(x, y, n);
}
void tanh_avx2(const float *x, float *y, int64_t n) {
    unary<tanh8>(x, y, n);
}
void sigmoid_avx2(const float *x, float *y, int64_t n) {
    unary<sigmoid8>(x, y, n);
}
void silu_avx2(const float *x, float *y, int64_t n) {
    unary<silu8>(x, y, n);
}
void gelu_avx2(const float *x, float *y, int64_t n) {
    unary<gelu8>(x, y, n);
}
void gelu_quick_avx2(const float *x, float *y, int64_t n) {
    unary<gelu_quick8>(x, y, n);
}
void swiglu_avx2(const float *gate, const float *up, float *y, int64_t n) {
    gated<silu8>(gate, up, y, n);
}
void geglu_avx2(const float *gate, const float *up, float *y, int64_t n) {
    gated<gelu8>(gate, up, y, n);
}

void rms_norm_avx2(const float *x, const float *w, float *y, int64_t n, float eps) {
    __m256 part[4];
    for (auto &p : part) p = _mm256_setzero_ps();
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        for (int k = 0; k < 4; ++k) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * k);
            part[k] = _mm256_fmadd_ps(v, v, part[k]);
        }
    }
    for (; i < n; i += 8) {
        const __m256 v = _mm256_maskload_ps(x + i, tail_mask(n - i));
        part[0] = _mm256_fmadd_ps(v, v, part[0]);
    }
    const float squares = sum8(_mm256_add_ps(_mm256_add_ps(part[0], part[1]), _mm256_add_ps(part[2], part[3])));
    const __m256 factor = _mm256_set1_ps(1.0f / __builtin_sqrtf(squares / float(n) + eps));
    for (i = 0; i < n; i += 8) {
        const __m256i mask = tail_mask(n - i);
        __m256 v = _mm256_mul_ps(_mm256_maskload_ps(x + i, mask), factor);
        if (w != nullptr) v = _mm256_mul_ps(v, _mm256_maskload_ps(w + i, mask));
        _mm256_maskstore_ps(y + i, mask, v);
    }
}

float max_avx2(const float *x, int64_t n) {
    const __m256 least = _mm256_set1_ps(-__builtin_inff());
    __m256 most = least;
    int64_t i = 0;
    // The second operand is the answer where the first is NaN.
    for (; i + 8 <= n; i += 8) most = _mm256_max_ps(_mm256_loadu_ps(x + i), most);
    if (i < n) {
        const __m256i mask = tail_mask(n - i);
        const __m256 v = _mm256_blendv_ps(least, _mm256_maskload_ps(x + i, mask), _mm256_castsi256_ps(mask));
        most = _mm256_max_ps(v, most);
    }
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(most), _mm256_extractf128_ps(most, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

float exp_sum_avx2(float *x, int64_t n, float max) {
    const __m256 top = _mm256_set1_ps(max);
    const bool nothing = max == -__builtin_inff();
    __m256 sum = _mm256_setzero_ps();
    for (int64_t i = 0; i < n; i += 8) {
        const __m256i mask = tail_mask(n - i);
        const __m256 v = _mm256_maskload_ps(x + i, mask);
        __m256 e = nothing ? _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_UNORD_Q)) : exp8(_mm256_sub_ps(v, top));
        e = _mm256_and_ps(e, _mm256_castsi256_ps(mask));
        _mm256_maskstore_ps(x + i, mask, e);
        sum = _mm256_add_ps(sum, e);
    }
    return sum8(sum);
}

void weighted_sum_avx2(const float *p, int64_t p_stride, const float *v, int64_t n, int64_t d, int64_t rows,
                       const float *keep, float *acc) {
    for (; rows >= 4; rows -= 4, p += 4 * p_stride, keep += 4, acc += 4 * d) {
        weighted_rows<4>(p, p_stride, v, n, d, keep, acc);
    }
    if (rows == 3) weighted_rows<3>(p, p_stride, v, n, d, keep, acc);
    if (rows == 2) weighted_rows<2>(p, p_stride, v, n, d, keep, acc);
    if (rows == 1) weighted_rows<1>(p, p_stride, v, n, d, keep, acc);
}

void rope_table_avx2(const double *turns, int64_t count, double position, float magnitude, float *table) {
    const __m256d p = _mm256_set1_pd(position);
    const __m128 factor = _mm_set1_ps(magnitude);
    for (int64_t i = 0; i < count; i += 4) {
        const __m256i mask = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count - i), _mm256_setr_epi64x(0, 1, 2, 3));
        const __m128i narrow =
            _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(mask, _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0)));
        __m256d sine, cosine;
        sine_cosine(_mm256_mul_pd(_mm256_maskload_pd(turns + i, mask), p), sine, cosine);
        _mm_maskstore_ps(table + i, narrow, _mm_mul_ps(_mm256_cvtpd_ps(cosine), factor));
        _mm_maskstore_ps(table + count + i, narrow, _mm_mul_ps(_mm256_cvtpd_ps(sine), factor));
    }
}

}  // namespace tenon::cpu
