// Arithmetic on sizes that came from outside: an overflow is an answer, not a wrap.
#pragma once

#include <cstdint>
#include <optional>

namespace tenon {

inline std::optional<uint64_t> add(uint64_t a, uint64_t b) {
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? std::nullopt : std::optional(sum);
}

/// The next multiple of `alignment` (a power of two; 0 counts as 1).
inline std::optional<uint64_t> align_up(uint64_t value, uint64_t alignment) {
    const uint64_t mask = alignment ? alignment - 1 : 0;
    const auto sum = add(value, mask);
    return sum ? std::optional(*sum & ~mask) : std::nullopt;
}

}  // namespace tenon
