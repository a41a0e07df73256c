// Q4_1: 32 elements in 20 bytes: f16 scale, f16 minimum, then 16 bytes whose low nibbles are elements 0 to 15 and whose
// high nibbles are 16 to 31. An element is scale * nibble + minimum.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 20, dst += 32) {
        const float scale = load_f16(at), min = load_f16(at + 2);
        for (int i = 0; i < 16; ++i) {
            dst[i] = scale * float(at[4 + i] & 15) + min;
            dst[16 + i] = scale * float(at[4 + i] >> 4) + min;
        }
    }
}

constexpr TypeRow k_rows[] = {
    {"avx2", isa_avx2, decode_q4_1_avx2, dot_q8_q4_1_avx2, unpack_q4_1_avx2, tile_q8_unsigned_avx2},
    {"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q4_1;
const Type type_q4_1{TN_TYPE_ID_Q4_1, k_rows};

}  // namespace tenon::cpu
