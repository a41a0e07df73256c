// Q2_K: 256 elements in 84 bytes: 16 bytes, one for each 16 elements, with a scale in the low nibble and a minimum in
// the high one; 64 bytes of elements; f16 scale of the scales; f16 scale of the minima. An element is scale * two bits
// - minimum. The elements' bytes are two runs of 32 for 128 elements each: bits 2k and 2k + 1 of byte i are element
// 32 k + i of the half.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t b = 0; b < n / 256; ++b, at += 84, dst += 256) {
        const float scales = load_f16(at + 80), minima = load_f16(at + 82);
        for (int i = 0; i < 256; ++i) {
            const uint8_t of = at[i / 16];
            const int bits = at[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
            dst[i] = scales * float(of & 15) * float(bits) - minima * float(of >> 4);
        }
    }
}

constexpr TypeRow k_rows[] = {{"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_q2_k;
const Type type_q2_k{TN_TYPE_ID_Q2_K, k_rows};

}  // namespace tenon::cpu
