// What must have ended before a segment starts, where that isn't said by the order of its device's stream; and what is
// known to have ended by then, from which follows how long memory must be kept for readers on other devices.
#pragma once

#include <span>
#include <vector>

#include "sched/split.h"

namespace tenon {

class Order {
public:
    /// A device's segments in order.
    std::span<const uint32_t> lane(uint32_t device) const {
        return std::span(lanes_).subspan(first_[device], first_[device + 1] - first_[device]);
    }
    /// The number of a segment among those of its device.
    uint32_t position(uint32_t segment) const { return position_[segment]; }
    /// How many of a device's segments have ended for sure when this one starts, its own device's queue included.
    uint32_t ended(uint32_t segment, uint32_t device) const { return ended_[size_t(segment) * devices_ + device]; }
    /// The first segment of `device` that can't start before `reader` (of another device) has ended; k_no_value where
    /// there is none in this run.
    uint32_t first_after(uint32_t device, uint32_t reader, const Split &split) const;

    /// A base value that a segment of another device than its own reads, or changes, where it lies; copies out of it too.
    struct ForeignUse {
        ValueId base;
        uint32_t segment;
    };
    std::span<const ForeignUse> foreign_uses() const { return foreign_uses_; }
    /// States, each with a device that uses it.
    struct StateUse {
        ValueId base;
        uint32_t device;
    };
    std::span<const StateUse> state_uses() const { return state_uses_; }
    /// A state is used by more than one device: then a run can't start before the one before has ended.
    bool shares_states() const { return shares_states_; }

private:
    friend class Orderer;
    uint32_t devices_ = 0;
    LargeVector<uint32_t> lanes_, first_, position_, ended_;
    LargeVector<ForeignUse> foreign_uses_;
    std::vector<StateUse> state_uses_;
    bool shares_states_ = false;
};

/// Fills `split.waits`. Reads wait for the last write, writes for the reads since then (in-place changes and states);
/// what follows from other waits is left out. Time: operands, plus segments times devices.
Order order_segments(const PlaceInput &input, const Placement &placement, Split &split);

}  // namespace tenon
