// Which positions of its sequence a token may look at: the rule that attention and attention_mask share (ops.h).
#pragma once

#include <algorithm>
#include <cstdint>

namespace tenon::cpu {

struct Positions {
    int64_t first = 0, end = 0;  // empty if first >= end
    bool empty() const noexcept { return first >= end; }
};

// Positions p with kv_start <= p < kv_start + kv_len, p <= q_pos, and p > q_pos - window if window > 0. The cache holds
// `capacity` positions of the sequence, so none beyond kv_start + capacity exists.
inline Positions visible(int64_t q_pos, int64_t kv_start, int64_t kv_len, int64_t window, int64_t capacity) noexcept {
    Positions p{kv_start, std::min(kv_start + std::min(kv_len, capacity), q_pos + 1)};
    if (window > 0) p.first = std::max(p.first, q_pos - window + 1);
    return p;
}

// The slot of a position: its remainder, which is never negative.
inline int64_t slot_of(int64_t position, int64_t capacity) noexcept {
    const int64_t slot = position % capacity;
    return slot < 0 ? slot + capacity : slot;
}

}  // namespace tenon::cpu
