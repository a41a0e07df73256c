// Q5_0: 32 elements in 22 bytes: f16 scale, 4 bytes whose bit i is the fifth bit of element i, then 16 bytes whose low
// nibbles are elements 0 to 15 and whose high nibbles are 16 to 31. An element is scale * (five bits - 16).
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 22, dst += 32) {
        const float scale = load_f16(at);
        const uint32_t fifth = load_u32(at + 2);
        for (int i = 0; i < 16; ++i) {
            dst[i] = scale * float(int((at[6 + i] & 15) | (fifth >> i & 1) << 4) - 16);
            dst[16 + i] = scale * float(int((at[6 + i] >> 4) | (fifth >> (16 + i) & 1) << 4) - 16);
        }
    }
}

constexpr TypeRow k_rows[] = {{"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q5_0;
const Type type_q5_0{TN_TYPE_ID_Q5_0, k_rows};

}  // namespace tenon::cpu
