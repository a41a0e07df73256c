// Q4_0: 32 elements in 18 bytes: f16 scale, then 16 bytes whose low nibbles are elements 0 to 15 and whose high nibbles
// are 16 to 31. An element is scale * (nibble - 8).
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 18, dst += 32) {
        const float scale = load_f16(at);
        for (int i = 0; i < 16; ++i) {
            dst[i] = scale * float((at[2 + i] & 15) - 8);
            dst[16 + i] = scale * float((at[2 + i] >> 4) - 8);
        }
    }
}

constexpr TypeRow k_rows[] = {
    {"avx2", isa_avx2, decode_q4_0_avx2, dot_q8_q4_0_avx2, unpack_q4_0_avx2, tile_q8_unsigned_avx2},
    {"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q4_0;
const Type type_q4_0{TN_TYPE_ID_Q4_0, k_rows};

}  // namespace tenon::cpu
