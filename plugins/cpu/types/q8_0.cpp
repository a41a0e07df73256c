// Q8_0: 32 elements in 34 bytes: f16 scale, then 32 signed bytes. An element is scale * byte.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 32; ++b, at += 34, dst += 32) {
        const float scale = load_f16(at);
        for (int i = 0; i < 32; ++i) dst[i] = scale * float(int8_t(at[2 + i]));
    }
}

constexpr TypeRow k_rows[] = {
    {"avx2", isa_avx2, decode_q8_0_avx2, dot_q8_q8_0_avx2, unpack_q8_0_avx2, tile_q8_signed_avx2},
    {"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q8_0;
const Type type_q8_0{TN_TYPE_ID_Q8_0, k_rows};

}  // namespace tenon::cpu
