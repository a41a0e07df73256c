// The memory planner: lifetimes in, places out. Knows nothing of graphs or devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tenon/arena.h"

namespace tenon {

/// Something that needs `bytes` from time `first` to time `last`, both included (UINT32_MAX: to the end). Times only
/// order: they may be sparse. A `last` before `first` counts as `first`.
struct Interval {
    uint64_t bytes = 0;
    uint64_t alignment = 1;  // a power of two
    uint32_t first = 0, last = 0;
};

/// Where an interval lies: `offset` bytes behind the start of its chunk, a multiple of its alignment. An interval of
/// 0 bytes takes no room and gets {0, 0}.
struct MemoryPlace {
    uint32_t chunk = 0;
    uint64_t offset = 0;
    bool operator==(const MemoryPlace &) const = default;
};

struct MemoryPlan {
    LargeVector<MemoryPlace> places;    // one per interval
    std::vector<uint64_t> chunk_bytes;  // the end of the highest interval of each chunk; empty: nothing needs room
    uint64_t bytes = 0;                 // the sum over the chunks
    uint64_t lower_bound_bytes = 0;     // the largest sum of bytes that live at once: no plan needs less
};

/// Places the intervals so that no two which live at once share a byte, and tries to keep `bytes` small. With
/// `max_chunk_bytes` (0: no limit, one chunk) no chunk grows beyond it: what doesn't fit opens another one.
///
/// The caller has checked that no interval is larger than the limit, and that the sum of all sizes, each rounded up to
/// its alignment, stays below 2^63. Any thread; the same input gives the same plan.
///
/// Effort: a sweep over time, n log n at worst, ends at the lower bound for most graphs. Where it doesn't, other
/// orders are tried for as long as their *steps* (pairs of intervals looked at, counted and never timed) stay within
/// max(9 n, 8192): one to two times the cost of the sweep again; a graph of few nodes affords them all.
MemoryPlan plan_memory(std::span<const Interval> intervals, uint64_t max_chunk_bytes = 0);

}  // namespace tenon
