#include "encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rows/rows.h"
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void to_f32(const float *x, void *dst, int64_t n) {
    if (n > 0) std::memcpy(dst, x, size_t(n) * sizeof(float));  // an empty tensor may have no address
}

template <uint16_t (*convert)(float) noexcept>
void to_half(const float *x, void *dst, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const uint16_t half = convert(x[i]);
        std::memcpy(static_cast<std::byte *>(dst) + 2 * i, &half, 2);
    }
}

// The scale of a block is stored as f16; the elements are divided by the f32 scale, as the format's writers do.
void to_q8_0(const float *x, void *dst, int64_t n) {
    auto *at = static_cast<uint8_t *>(dst);
    for (int64_t b = 0; b < n / 32; ++b, x += 32, at += 34) {
        float largest = 0;
        for (int i = 0; i < 32; ++i) largest = std::isnan(x[i]) ? x[i] : std::max(largest, std::fabs(x[i]));
        const float scale = largest / 127.0f, inverse = scale > 0 && std::isfinite(scale) ? 1.0f / scale : 0.0f;
        const uint16_t stored = f32_to_f16(scale);
        std::memcpy(at, &stored, 2);
        for (int i = 0; i < 32; ++i) {
            const float scaled = std::clamp(x[i] * inverse, -127.0f, 127.0f);
            at[2 + i] = uint8_t(std::isnan(scaled) ? 0 : int(std::nearbyint(scaled)));
        }
    }
}

constexpr Row<EncodeFn> k_f16[] = {{"avx2", isa_avx2, encode_f16_avx2}, {"reference", 0, to_half<f32_to_f16>}};

}  // namespace

EncodeFn choose_encode(uint32_t type, Features have) noexcept {
    switch (type) {
        case TN_TYPE_ID_F32: return to_f32;
        case TN_TYPE_ID_F16: return choose(k_f16, have).fn;
        case TN_TYPE_ID_BF16: return to_half<f32_to_bf16>;
        case TN_TYPE_ID_Q8_0: return to_q8_0;
        default: return nullptr;
    }
}

}  // namespace tenon::cpu
