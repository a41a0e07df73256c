// Q3_K: 256 elements in 110 bytes: 32 bytes of third bits, 64 bytes of two bits each, 12 bytes with 16 scales of six
// bits, f16 scale of the scales. An element is scale * (three bits - 4), a scale is its six bits - 32.
//
// Two bits: as in Q2_K. Bit k of byte i of the third bits is that of element 32 k + i. Scale s (of elements 16 s on):
// its low four bits are a nibble of byte s % 8, the low one for s < 8; its high two are bits 2 (s / 4) and the next of
// byte 8 + s % 4.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 256; ++b, at += 110, dst += 256) {
        const uint8_t *packed = at + 96;
        const float scales = load_f16(at + 108);
        for (int s = 0; s < 16; ++s) {
            const int low = packed[s % 8] >> (s / 8 * 4) & 15, high = packed[8 + s % 4] >> (s / 4 * 2) & 3;
            const float scale = scales * float((low | high << 4) - 32);
            for (int i = s * 16; i < s * 16 + 16; ++i) {
                const int two = at[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
                const int third = at[i % 32] >> (i / 32) & 1;
                dst[i] = scale * float((two | third << 2) - 4);
            }
        }
    }
}

constexpr TypeRow k_rows[] = {{"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q3_k;
const Type type_q3_k{TN_TYPE_ID_Q3_K, k_rows};

}  // namespace tenon::cpu
