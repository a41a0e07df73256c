// Reference placement: which device each node runs on, and why (DESIGN section 3, the table of steps and codes). Works
// on tables alone: no device is asked.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sched/support.h"
#include "sched/values.h"
#include "tenon/schedule.h"

namespace tenon {

struct PlaceInput {
    const Graph &graph;
    const ValueTable &values;
    const SupportTable &support;
    const MemoryReach &reach;          // devices: first = highest priority, last = fallback
    std::span<const uint32_t> pinned;  // per node: device, or k_no_value; empty: no pins
    /// Text for messages: a device's name, and why it refuses a node.
    std::function<std::string(uint32_t device)> name;
    std::function<std::string(uint32_t device, NodeId node)> reason;
};

struct Placement {
    LargeVector<Assignment> nodes;   // one per node
    LargeVector<Assignment> values;  // one per value: where it lies first
};

/// The device that each node is pinned to; empty where there are no pins. not_found: a pin names a device that isn't
/// there.
Result<std::vector<uint32_t>> resolve_pins(const Graph &graph, const DeviceList &devices, std::span<const Pin> pins);

/// Time: nodes times devices. unsupported names the node, its op and types, and each device's reason.
Result<Placement> place(const PlaceInput &input);

}  // namespace tenon
