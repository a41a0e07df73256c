// Q5_1: 32 elements in 24 bytes: f16 scale, f16 minimum, 4 bytes whose bit i is the fifth bit of element i, then 16
// bytes whose low nibbles are elements 0 to 15 and whose high nibbles are 16 to 31. An element is scale * five bits +
// minimum.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 24, dst += 32) {
        const float scale = load_f16(at), min = load_f16(at + 2);
        const uint32_t fifth = load_u32(at + 4);
        for (int i = 0; i < 16; ++i) {
            dst[i] = scale * float((at[8 + i] & 15) | (fifth >> i & 1) << 4) + min;
            dst[16 + i] = scale * float((at[8 + i] >> 4) | (fifth >> (16 + i) & 1) << 4) + min;
        }
    }
}

constexpr TypeRow k_rows[] = {{"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q5_1;
const Type type_q5_1{TN_TYPE_ID_Q5_1, k_rows};

}  // namespace tenon::cpu
