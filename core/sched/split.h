// Cuts the placed nodes into segments and finds the copies that carry values between devices.
#pragma once

#include <map>
#include <vector>

#include "sched/place.h"
#include "tenon/schedule.h"

namespace tenon {

struct Split {
    std::vector<Segment> segments;
    std::vector<Copy> copies;
    /// Per segment: the copy that stands for a base value which its device can't reach.
    std::vector<std::map<ValueId, uint32_t>> stand_ins;
};

/// unsupported: a state would have to be carried, or a value changed in place from another device.
Result<Split> split(const PlaceInput &input, const Placement &placement);

}  // namespace tenon
