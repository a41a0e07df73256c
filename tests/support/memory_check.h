// Is a memory plan right? Found from the definition alone, by letting time go by over an ordered set of what lives: the
// planner's way is not looked at, so that both can't be wrong in the same way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "sched/memory.h"

namespace tenon {

namespace memory_check {

struct Change {
    uint64_t time;
    bool begins;
    size_t interval;
};

/// Ends (after the last time) before begins, at each time.
inline std::vector<Change> changes_by_time(std::span<const Interval> intervals) {
    std::vector<Change> changes;
    for (size_t i = 0; i < intervals.size(); ++i) {
        if (intervals[i].bytes == 0) continue;
        changes.push_back({intervals[i].first, true, i});
        changes.push_back({uint64_t(std::max(intervals[i].first, intervals[i].last)) + 1, false, i});
    }
    std::sort(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
        return std::tuple(a.time, a.begins, a.interval) < std::tuple(b.time, b.begins, b.interval);
    });
    return changes;
}

inline std::string text(std::initializer_list<std::string> parts) {
    std::string all;
    for (const std::string &part : parts) all += part;
    return all;
}

/// Each interval alone: aligned, in a chunk, inside it; and each chunk ends where its highest interval does.
inline std::string check_places(std::span<const Interval> intervals, const MemoryPlan &plan) {
    using std::to_string;
    std::vector<uint64_t> ends(plan.chunk_bytes.size());
    for (size_t i = 0; i < intervals.size(); ++i) {
        const Interval &interval = intervals[i];
        const MemoryPlace &place = plan.places[i];
        const std::string who = "interval " + to_string(i);
        if (interval.bytes == 0) {
            if (place.chunk || place.offset) return who + " is empty but doesn't lie at chunk 0, offset 0";
            continue;
        }
        if (place.chunk >= ends.size())
            return text({who, " lies in chunk ", to_string(place.chunk), ", which isn't there"});
        if (interval.alignment > 1 && place.offset % interval.alignment)
            return text(
                {who, " lies at ", to_string(place.offset), ", not a multiple of ", to_string(interval.alignment)});
        const uint64_t end = place.offset + interval.bytes;
        if (end < place.offset || end > plan.chunk_bytes[place.chunk])
            return text(
                {who, " ends at ", to_string(end), ", behind its chunk's ", to_string(plan.chunk_bytes[place.chunk])});
        ends[place.chunk] = std::max(ends[place.chunk], end);
    }
    for (size_t c = 0; c < ends.size(); ++c)
        if (ends[c] != plan.chunk_bytes[c])
            return text({"chunk ", to_string(c), " has ", to_string(plan.chunk_bytes[c]),
                         " bytes, but its highest interval ends at ", to_string(ends[c])});
    return {};
}

}  // namespace memory_check

/// Empty if `plan` is a right plan of `intervals` under the limit (0: none); else what is wrong, the first thing found.
/// Time n log n.
inline std::string check_plan(std::span<const Interval> intervals, const MemoryPlan &plan, uint64_t max_chunk_bytes) {
    using namespace memory_check;
    using std::to_string;
    if (plan.places.size() != intervals.size())
        return text({to_string(plan.places.size()), " places for ", to_string(intervals.size()), " intervals"});
    if (max_chunk_bytes == 0 && plan.chunk_bytes.size() > 1)
        return text({to_string(plan.chunk_bytes.size()), " chunks although there is no limit"});
    uint64_t sum = 0;
    for (const uint64_t bytes : plan.chunk_bytes) {
        if (max_chunk_bytes && bytes > max_chunk_bytes)
            return text({"a chunk of ", to_string(bytes), " bytes, the limit is ", to_string(max_chunk_bytes)});
        sum += bytes;
    }
    if (sum != plan.bytes) return text({"bytes is ", to_string(plan.bytes), ", the chunks' sum is ", to_string(sum)});
    if (std::string wrong = check_places(intervals, plan); !wrong.empty()) return wrong;

    std::set<std::tuple<uint32_t, uint64_t, size_t>> live;  // chunk, offset, interval
    uint64_t live_bytes = 0, most_bytes = 0;
    for (const Change &change : changes_by_time(intervals)) {
        const size_t i = change.interval;
        const MemoryPlace &place = plan.places[i];
        if (!change.begins) {
            live.erase({place.chunk, place.offset, i});
            live_bytes -= intervals[i].bytes;
            continue;
        }
        const auto here = live.insert({place.chunk, place.offset, i}).first;
        auto clash = [&](auto low, auto high) {
            const auto [chunk, offset, interval] = *low;
            return chunk == std::get<0>(*high) && offset + intervals[interval].bytes > std::get<1>(*high);
        };
        auto report = [&](size_t other) {
            return text({"intervals ", to_string(other), " and ", to_string(i), " share bytes at time ",
                         to_string(change.time)});
        };
        if (here != live.begin() && clash(std::prev(here), here)) return report(std::get<2>(*std::prev(here)));
        if (std::next(here) != live.end() && clash(here, std::next(here))) return report(std::get<2>(*std::next(here)));
        live_bytes += intervals[i].bytes;
        most_bytes = std::max(most_bytes, live_bytes);
    }
    if (plan.lower_bound_bytes != most_bytes)
        return text({"the lower bound is ", to_string(plan.lower_bound_bytes), ", the largest live sum is ",
                     to_string(most_bytes)});
    if (plan.bytes < most_bytes)
        return text({to_string(plan.bytes), " bytes are less than the live ", to_string(most_bytes)});
    return {};
}

}  // namespace tenon
