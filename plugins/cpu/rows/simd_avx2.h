// Small vector helpers for the files that are compiled for AVX2, FMA and F16C. All of it has internal linkage: see
// rows.h.
#pragma once

#include <immintrin.h>

#include "rows/rows.h"

namespace tenon::cpu {
namespace {

[[maybe_unused]] inline float sum8(__m256 v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// The sums of four vectors.
[[maybe_unused]] inline __m128 sum8x4(__m256 a, __m256 b, __m256 c, __m256 d) {
    const __m256 pairs = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    return _mm_add_ps(_mm256_castps256_ps128(pairs), _mm256_extractf128_ps(pairs, 1));
}

// Lanes below n set; for the last, partial vector of a row.
[[maybe_unused]] inline __m256i tail_mask(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(int(n < 8 ? n : 8)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

// exp to within 2 units in the last place over the whole range; exp(-inf) = 0, NaN stays. x = k ln 2 + r; the
// polynomial is the series of exp up to r^7 (|r| <= ln 2 / 2); 2^k is applied in two halves, so that subnormal results
// come out right.
[[maybe_unused]] inline __m256 exp8(__m256 x) {
    // The second operand is what these answer for a NaN.
    x = _mm256_min_ps(_mm256_set1_ps(89.0f), _mm256_max_ps(_mm256_set1_ps(-104.0f), x));
    const __m256 k =
        _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(k, _mm256_set1_ps(0.693145752f), x);
    r = _mm256_fnmadd_ps(k, _mm256_set1_ps(1.42860677e-6f), r);
    __m256 p = _mm256_set1_ps(1.0f / 5040);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    const __m256i whole = _mm256_cvtps_epi32(k);
    const __m256i half = _mm256_srai_epi32(whole, 1), rest = _mm256_sub_epi32(whole, half);
    const __m256i bias = _mm256_set1_epi32(127);
    p = _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23)));
    return _mm256_mul_ps(p, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23)));
}

[[maybe_unused]] inline __m256 sigmoid8(__m256 x) {
    const __m256 one = _mm256_set1_ps(1.0f);
    return _mm256_div_ps(one, _mm256_add_ps(one, exp8(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f)))));
}

[[maybe_unused]] inline __m256 silu8(__m256 x) {
    return _mm256_mul_ps(x, sigmoid8(x));
}

// x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3)), which equals 0.5 x (1 + tanh(half of that)) without its cancellation.
[[maybe_unused]] inline __m256 gelu8(__m256 x) {
    const __m256 square = _mm256_mul_ps(x, x);
    const __m256 inner = _mm256_mul_ps(x, _mm256_fmadd_ps(square, _mm256_set1_ps(0.044715f), _mm256_set1_ps(1.0f)));
    return _mm256_mul_ps(x, sigmoid8(_mm256_mul_ps(inner, _mm256_set1_ps(1.59576912f))));
}

[[maybe_unused]] inline __m256 gelu_quick8(__m256 x) {
    return _mm256_mul_ps(x, sigmoid8(_mm256_mul_ps(x, _mm256_set1_ps(1.702f))));
}

// Near 0 by its series, since the quotient would cancel; elsewhere 1 - 2 / (exp(2 |x|) + 1) with the sign of x.
[[maybe_unused]] inline __m256 tanh8(__m256 x) {
    const __m256 sign = _mm256_set1_ps(-0.0f), one = _mm256_set1_ps(1.0f);
    const __m256 magnitude = _mm256_andnot_ps(sign, x), square = _mm256_mul_ps(x, x);
    __m256 p = _mm256_set1_ps(-1382.0f / 155925);
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(62.0f / 2835));
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(-17.0f / 315));
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(2.0f / 15));
    p = _mm256_fmadd_ps(p, square, _mm256_set1_ps(-1.0f / 3));
    const __m256 small = _mm256_fmadd_ps(_mm256_mul_ps(p, square), x, x);
    const __m256 e = exp8(_mm256_add_ps(magnitude, magnitude));
    const __m256 large = _mm256_sub_ps(one, _mm256_div_ps(_mm256_set1_ps(2.0f), _mm256_add_ps(e, one)));
    const __m256 is_small = _mm256_cmp_ps(magnitude, _mm256_set1_ps(0.3f), _CMP_LT_OQ);
    return _mm256_blendv_ps(_mm256_or_ps(large, _mm256_and_ps(sign, x)), small, is_small);
}

}  // namespace
}  // namespace tenon::cpu
