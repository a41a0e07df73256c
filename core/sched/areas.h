// The memory that a schedule needs of its devices: what lives when, in which of three areas of which device, and after
// planning where it lies.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "sched/memory.h"
#include "sched/reach.h"
#include "tenon/arena.h"
#include "tenon/schedule.h"

namespace tenon {

/// Where a base value's bytes are.
struct Storage {
    /// arena: activations and scratch, one for a session; slot: what a run has for itself while others are in flight;
    /// constant: written once; tensor: a weight's or state's own buffer.
    enum class Kind : uint8_t { none, tensor, arena, slot, constant };
    Kind kind = Kind::none;
    uint32_t device = 0;  // whose area
    uint32_t index = 0;   // of the interval in its area; of the tensor
    bool in_area() const { return kind >= Kind::arena; }
};

/// An in-place offer of a plan: `output` may lie where `input` lies, which nobody needs after `time`.
struct InPlaceOffer {
    Storage output, input;
    uint32_t time = 0;
};

/// Times are those of a device's own queue: each device has its own clock.
class Areas {
public:
    static constexpr uint32_t k_to_the_end = UINT32_MAX;

    explicit Areas(const DeviceSet &devices) : devices_(devices), areas_(devices.count()) {}

    /// Makes room for as much as the arenas of the devices in `placed` (per value: where it lies) can have to hold.
    void expect(std::span<const Assignment> placed);
    /// Something that nobody has touched yet. out_of_memory: larger than a buffer can be there; `name` is for the text.
    Result<Storage> add(Storage::Kind kind, uint32_t device, uint64_t bytes, std::string_view name);
    /// It lives at this time too. Storage that is in no area is left alone.
    void touch(const Storage &storage, uint32_t time);
    void offer(const InPlaceOffer &offer);
    /// Accepts what offers it can, and gives everything its place. out_of_memory: larger than any address.
    Status plan();

    /// After planning.
    MemoryPlace place(const Storage &storage) const;
    const MemoryPlan &memory(Storage::Kind kind, uint32_t device) const { return area(kind, device).plan; }
    std::span<const Interval> intervals(Storage::Kind kind, uint32_t device) const {
        const auto &intervals = area(kind, device).intervals;
        return {intervals.data(), intervals.size()};
    }
    MemoryArea summary(Storage::Kind kind, uint32_t device) const;

private:
    struct Offer {
        uint32_t output, input;  // intervals
        uint32_t time;
    };
    struct Area {
        FlatArray<Interval> intervals;
        FlatArray<Offer> offers;
        /// Per interval: the one in whose place it lies. Empty while nothing was merged.
        LargeVector<uint32_t> lies_in;
        std::vector<bool> given;  // its own place has been passed on, which happens once
        MemoryPlan plan;
    };
    Area &area(Storage::Kind kind, uint32_t device) {
        return areas_[device][size_t(kind) - size_t(Storage::Kind::arena)];
    }
    const Area &area(Storage::Kind kind, uint32_t device) const {
        return areas_[device][size_t(kind) - size_t(Storage::Kind::arena)];
    }
    static void accept(Area &there, const Offer &offer);
    Status plan_area(Area &area, uint32_t device);

    const DeviceSet &devices_;
    std::vector<std::array<Area, 3>> areas_;
};

}  // namespace tenon
