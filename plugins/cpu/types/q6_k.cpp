// Q6_K: 256 elements in 210 bytes: 128 bytes of low four bits, 64 bytes of high two, 16 signed bytes of scales, one for
// each 16 elements, f16 scale of the scales. An element is scale * (six bits - 32). Each half of 128 elements has 64
// bytes of nibbles, the low ones elements 0 to 63, the high ones 64 to 127, and 32 bytes of pairs: bits 2k and 2k + 1
// of byte i belong to element 32 k + i of the half.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 256; ++b, at += 210, dst += 256) {
        const float scales = load_f16(at + 208);
        for (int s = 0; s < 16; ++s) {
            const float scale = scales * float(int8_t(at[192 + s]));
            for (int i = s * 16; i < s * 16 + 16; ++i) {
                const int half = i / 128, in = i % 128;
                const int low = at[half * 64 + in % 64] >> (in / 64 * 4) & 15;
                const int high = at[128 + half * 32 + in % 32] >> (in / 32 * 2) & 3;
                dst[i] = scale * float((low | high << 4) - 32);
            }
        }
    }
}

constexpr TypeRow k_rows[] = {{"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q6_k;
const Type type_q6_k{TN_TYPE_ID_Q6_K, k_rows};

}  // namespace tenon::cpu
