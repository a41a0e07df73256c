// BF16: the upper half of an IEEE single, little endian.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t i = 0; i < n; ++i) dst[i] = bf16_to_f32(uint16_t(at[2 * i] | at[2 * i + 1] << 8));
}

constexpr TypeRow k_rows[] = {{"avx2", isa_avx2, decode_bf16_avx2, nullptr, nullptr, nullptr},
                              {"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_bf16;
const Type type_bf16{TN_TYPE_ID_BF16, k_rows};

}  // namespace tenon::cpu
