// Row numbers come as i32 or i64 vectors of any stride.
#pragma once

#include "kernel.h"

namespace tenon::cpu {

// Id number i (row-major) of an i32 or i64 operand that starts at base.
inline int64_t id_at(const Operand &ids, const std::byte *base, int64_t i) noexcept {
    const int64_t n = ids.last();
    const std::byte *at = base + (n > 0 ? ids.row_offset(i / n) + i % n * ids.last_stride() : 0);
    return ids.type == TN_TYPE_ID_I32 ? int64_t(*reinterpret_cast<const int32_t *>(at))
                                      : *reinterpret_cast<const int64_t *>(at);
}

}  // namespace tenon::cpu
