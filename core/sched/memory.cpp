#include "sched/memory.h"

#include <algorithm>
#include <numeric>

namespace tenon {
namespace {

uint64_t align_offset(uint64_t offset, uint64_t alignment) {
    return (offset + alignment - 1) & ~(alignment - 1);
}

uint64_t largest_live_sum(std::span<const Interval> intervals) {
    struct Change {
        uint64_t time;
        bool begins;
        uint64_t bytes;
    };
    std::vector<Change> changes;
    for (const Interval &interval : intervals) {
        changes.push_back({interval.first, true, interval.bytes});
        changes.push_back({uint64_t(interval.last) + 1, false, interval.bytes});
    }
    std::ranges::sort(changes, [](const Change &a, const Change &b) {
        return a.time != b.time ? a.time < b.time : a.begins < b.begins;  // ends before begins
    });
    uint64_t live = 0, most = 0;
    for (const Change &change : changes) {
        live = change.begins ? live + change.bytes : live - change.bytes;
        most = std::max(most, live);
    }
    return most;
}

MemoryPlan place_in_order(std::span<const Interval> intervals, std::span<const uint32_t> order) {
    MemoryPlan plan;
    plan.offsets.resize(intervals.size());
    std::vector<uint32_t> placed;  // by rising offset
    for (uint32_t id : order) {
        const Interval &interval = intervals[id];
        if (interval.bytes == 0) continue;
        uint64_t offset = 0;
        for (uint32_t other : placed) {
            const Interval &there = intervals[other];
            if (there.first > interval.last || interval.first > there.last) continue;
            if (plan.offsets[other] >= offset + interval.bytes) break;
            offset = std::max(offset, align_offset(plan.offsets[other] + there.bytes, interval.alignment));
        }
        plan.offsets[id] = offset;
        plan.bytes = std::max(plan.bytes, offset + interval.bytes);
        const auto at =
            std::ranges::upper_bound(placed, offset, {}, [&](uint32_t other) { return plan.offsets[other]; });
        placed.insert(at, id);
    }
    return plan;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Interval> intervals) {
    std::vector<uint32_t> order(intervals.size());
    std::iota(order.begin(), order.end(), 0u);
    auto length = [&](uint32_t i) { return uint64_t(intervals[i].last - intervals[i].first) + 1; };
    auto by_size = [&](uint32_t a, uint32_t b) { return intervals[a].bytes > intervals[b].bytes; };
    auto by_area = [&](uint32_t a, uint32_t b) {
        return double(intervals[a].bytes) * double(length(a)) > double(intervals[b].bytes) * double(length(b));
    };
    auto by_length = [&](uint32_t a, uint32_t b) { return length(a) > length(b); };

    MemoryPlan best = place_in_order(intervals, order);  // as given: by time
    auto attempt = [&](auto &&less) {
        std::vector<uint32_t> sorted = order;
        std::ranges::stable_sort(sorted, less);
        MemoryPlan plan = place_in_order(intervals, sorted);
        if (plan.bytes < best.bytes) best = std::move(plan);
    };
    best.lower_bound_bytes = largest_live_sum(intervals);
    const uint64_t lower_bound = best.lower_bound_bytes;
    if (best.bytes > lower_bound) attempt(by_size);
    if (best.bytes > lower_bound) attempt(by_area);
    if (best.bytes > lower_bound) attempt(by_length);
    best.lower_bound_bytes = lower_bound;
    return best;
}

}  // namespace tenon
