// Plain rows of the shared inner kernels, and the lists in which they come last. Sums run over several partial sums:
// that keeps rounding errors small and lets the compiler use the vectors that it has.
#include <algorithm>
#include <cmath>
#include <limits>

#include "rows/choose.h"

namespace tenon::cpu {
namespace {

constexpr int64_t k_lanes = 16;

float dot(const float *a, const float *b, int64_t n) {
    float lane[k_lanes] = {};
    int64_t i = 0;
    for (; i + k_lanes <= n; i += k_lanes) {
        for (int64_t j = 0; j < k_lanes; ++j) lane[j] += a[i + j] * b[i + j];
    }
    for (int64_t j = 0; i < n; ++i, ++j) lane[j] += a[i] * b[i];
    for (int64_t half = k_lanes / 2; half > 0; half /= 2) {
        for (int64_t j = 0; j < half; ++j) lane[j] += lane[j + half];
    }
    return lane[0];
}

void tile_f32(const float *const *w, const float *const *x, int64_t tokens, int64_t n, float *sums) {
    for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t r = 0; r < panel_rows; ++r) sums[t * panel_rows + r] += dot(w[r], x[t], n);
    }
}

void quantize_q8(const float *x, int64_t n, int8_t *q, float *pairs, float *sums) {
    for (int64_t b = 0; b < n / q8_block; ++b, x += q8_block, q += q8_block) {
        float largest = 0;
        bool finite = true;
        for (int64_t i = 0; i < q8_block; ++i) {
            largest = std::max(largest, std::fabs(x[i]));
            finite = finite && std::isfinite(x[i]);
        }
        float scale = largest / 127.0f;
        const float inverse = scale > 0 ? 127.0f / largest : 0.0f;
        int sum = 0;
        for (int64_t i = 0; i < q8_block; ++i) {
            // A subnormal scale's inverse can be infinite: clamped, since the product with it is of no weight.
            const float scaled = finite ? std::clamp(x[i] * inverse, -127.0f, 127.0f) : 0.0f;
            const int value = std::isnan(scaled) ? 0 : int(std::nearbyintf(scaled));
            q[i] = int8_t(value);
            sum += value;
        }
        if (!finite) scale = std::numeric_limits<float>::quiet_NaN();
        pairs[2 * b] = scale;
        pairs[2 * b + 1] = sums[b] = scale * float(sum);
    }
}

float max(const float *x, int64_t n) {
    float largest = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; ++i) {
        if (x[i] > largest) largest = x[i];
    }
    return largest;
}

float exp_sum(float *x, int64_t n, float max) {
    float lane[k_lanes] = {};
    const bool nothing = max == -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < n; ++i) {
        x[i] = nothing && !std::isnan(x[i]) ? 0.0f : std::exp(x[i] - max);
        lane[i % k_lanes] += x[i];
    }
    float sum = 0;
    for (float part : lane) sum += part;
    return sum;
}

void weighted_sum(const float *p, int64_t p_stride, const float *v, int64_t n, int64_t d, int64_t rows,
                  const float *keep, float *acc) {
    for (int64_t r = 0; r < rows; ++r, p += p_stride, acc += d) {
        for (int64_t j = 0; j < d; ++j) acc[j] *= keep[r];
        for (int64_t i = 0; i < n; ++i) {
            for (int64_t j = 0; j < d; ++j) acc[j] += p[i] * v[i * d + j];
        }
    }
}

void tanh_row(const float *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

constexpr Row<QuantizeQ8Fn> k_quantize_q8[] = {{"avx2", isa_avx2, quantize_q8_avx2}, {"reference", 0, quantize_q8}};
constexpr Row<TileF32Fn> k_tile_f32[] = {{"avx2", isa_avx2, tile_f32_avx2}, {"reference", 0, tile_f32}};
constexpr Row<MaxFn> k_max[] = {{"avx2", isa_avx2, max_avx2}, {"reference", 0, max}};
constexpr Row<ExpSumFn> k_exp_sum[] = {{"avx2", isa_avx2, exp_sum_avx2}, {"reference", 0, exp_sum}};
constexpr Row<WeightedSumFn> k_weighted_sum[] = {{"avx2", isa_avx2, weighted_sum_avx2}, {"reference", 0, weighted_sum}};
constexpr Row<UnaryFn> k_tanh[] = {{"avx2", isa_avx2, tanh_avx2}, {"reference", 0, tanh_row}};

}  // namespace

QuantizeQ8Fn choose_quantize_q8(Features have) noexcept {
    return choose(k_quantize_q8, have).fn;
}
TileF32Fn choose_tile_f32(Features have) noexcept {
    return choose(k_tile_f32, have).fn;
}
MaxFn choose_max(Features have) noexcept {
    return choose(k_max, have).fn;
}
ExpSumFn choose_exp_sum(Features have) noexcept {
    return choose(k_exp_sum, have).fn;
}
WeightedSumFn choose_weighted_sum(Features have) noexcept {
    return choose(k_weighted_sum, have).fn;
}
UnaryFn choose_tanh(Features have) noexcept {
    return choose(k_tanh, have).fn;
}

}  // namespace tenon::cpu
