// Reference placement: which device each node runs on, and why (DESIGN section 3, the table of steps and codes).
#pragma once

#include <span>
#include <vector>

#include "sched/support.h"
#include "tenon/schedule.h"

namespace tenon {

/// Which memory each device can use in place.
struct MemoryReach {
    std::vector<std::vector<bool>> of_device;  // [device][owner]: the owner's default buffer type
    std::vector<std::vector<bool>> of_bound;   // [device][value]: the type in which a bound base value lies

    static Result<MemoryReach> ask(const DeviceList &devices, const BoundTypes &bound, TypeSupport &types);
};

struct PlaceInput {
    const Graph &graph;
    const DeviceList &devices;  // first = highest priority, last = fallback
    const BoundTypes &bound;
    const SupportTable &support;
    const MemoryReach &reach;
    std::span<const uint32_t> pinned;  // per node: device, or k_no_value
    Decompositions &formulas;
};

struct Placement {
    std::vector<Assignment> nodes;   // one per node
    std::vector<Assignment> values;  // one per value: where it lies first
};

/// The device that each node is pinned to. not_found: a pin names a device that isn't there.
Result<std::vector<uint32_t>> resolve_pins(const Graph &graph, const DeviceList &devices, std::span<const Pin> pins);

/// unsupported names the node, its op and types, and each device's reason.
Result<Placement> place(const PlaceInput &input);

}  // namespace tenon
