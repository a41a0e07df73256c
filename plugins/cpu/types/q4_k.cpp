// Q4_K: 256 elements in 144 bytes: f16 scale of the scales, f16 scale of the minima, 12 bytes with eight of both
// (k_scales.h), 128 bytes of elements. An element is scale * four bits - minimum. Of each 32 bytes of elements the low
// nibbles are 32 elements, the high ones the next 32.
#include "k_scales.h"
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 256; ++b, at += 144, dst += 256) {
        const float scales = load_f16(at), minima = load_f16(at + 2);
        for (int s = 0; s < 8; ++s) {
            const ScaleMin of = k_scale_min(at + 4, s);
            const float scale = scales * float(of.scale), min = minima * float(of.min);
            const uint8_t *bytes = at + 16 + s / 2 * 32;
            for (int i = 0; i < 32; ++i) dst[s * 32 + i] = scale * float(bytes[i] >> (s % 2 * 4) & 15) - min;
        }
    }
}

constexpr TypeRow k_rows[] = {{"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q4_k;
const Type type_q4_k{TN_TYPE_ID_Q4_K, k_rows};

}  // namespace tenon::cpu
