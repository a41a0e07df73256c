// F16: IEEE half, little endian.
#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    const uint8_t *at = static_cast<const uint8_t *>(src);
    for (int64_t i = 0; i < n; ++i) dst[i] = load_f16(at + 2 * i);
}

constexpr TypeRow k_rows[] = {{"avx2", isa_avx2, decode_f16_avx2, nullptr, nullptr, nullptr},
                              {"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_f16;
const Type type_f16{TN_TYPE_ID_F16, k_rows};

}  // namespace tenon::cpu
