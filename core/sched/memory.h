// The memory planner: lifetimes in, offsets out. Knows nothing of graphs or devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// Something that needs `bytes` from time `first` to time `last`, both included.
struct Interval {
    uint64_t bytes = 0;
    uint64_t alignment = 1;  // a power of two
    uint32_t first = 0, last = 0;
};

struct MemoryPlan {
    std::vector<uint64_t> offsets;   // one per interval
    uint64_t bytes = 0;              // the end of the highest
    uint64_t lower_bound_bytes = 0;  // the largest sum of live bytes: no plan needs less
};

/// Places each interval at the lowest offset that is free during its whole life, in several orders, and keeps the best.
/// The same input gives the same plan. Time: orders times the number of pairs that live at once.
MemoryPlan plan_memory(std::span<const Interval> intervals);

}  // namespace tenon
