// Cuts the placed nodes into segments and finds the copies that carry values between devices.
#pragma once

#include <vector>

#include "sched/place.h"
#include "tenon/schedule.h"

namespace tenon {

struct Split {
    LargeVector<Segment> segments;
    LargeVector<Copy> copies;
    std::vector<uint32_t> waits;  // filled by order_segments
    /// The copies that stand for base values which a segment's device can't reach, made in this segment or earlier:
    /// those of segment s are [first_stand_in[s], first_stand_in[s + 1]).
    LargeVector<uint32_t> stand_ins, first_stand_in;
    /// Per value: the type of memory (MemoryReach) in which a base lies first; k_no_value for what nobody uses.
    LargeVector<uint32_t> type_of;

    std::span<const uint32_t> stand_ins_of(uint32_t segment) const {
        return std::span(stand_ins).subspan(first_stand_in[segment],
                                            first_stand_in[segment + 1] - first_stand_in[segment]);
    }
};

/// A segment ends behind each node of `observed` (rising). unsupported: a state would have to be carried, or a value
/// changed in place from another device. Time: operands of all nodes.
Result<Split> split(const PlaceInput &input, const Placement &placement, std::span<const NodeId> observed);

}  // namespace tenon
