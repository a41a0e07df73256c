// F32: IEEE single, little endian.
#include <cstring>

#include "tenon/ops.h"
#include "type.h"

namespace tenon::cpu {
namespace {

void decode(const void *src, float *dst, int64_t n) {
    if (n > 0) std::memcpy(dst, src, size_t(n) * sizeof(float));  // an empty tensor may have no address
}

constexpr TypeRow k_rows[] = {{"reference", isa_reference, decode, nullptr, nullptr, nullptr}};

}  // namespace

extern const Type type_f32;
const Type type_f32{TN_TYPE_ID_F32, k_rows};

}  // namespace tenon::cpu
