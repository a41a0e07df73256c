// The twelve bytes in which Q4_K and Q5_K keep eight scales and eight minima of six bits.
#pragma once

#include <cstdint>

namespace tenon::cpu {

struct ScaleMin {
    int scale, min;
};

// Of 32 elements from 32 s on. The first four have a byte each, whose upper two bits belong to the last four; those have
// their low four bits in a nibble each of the last four bytes.
inline ScaleMin k_scale_min(const uint8_t *packed, int s) noexcept {
    if (s < 4) return {packed[s] & 63, packed[s + 4] & 63};
    return {(packed[s + 4] & 15) | packed[s - 4] >> 6 << 4, packed[s + 4] >> 4 | packed[s] >> 6 << 4};
}

}  // namespace tenon::cpu
