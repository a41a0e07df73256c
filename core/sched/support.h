// Which device can run which node, asked once per graph and device: a node is supported where the device claims it or
// supports its whole decomposition.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sched/lowering.h"
#include "sched/reach.h"
#include "tenon/graph.h"

namespace tenon {

/// Of one node on one device.
struct NodeSupport {
    static constexpr uint8_t k_claimed = 1;  // runs as it is
    static constexpr uint8_t k_expands = 2;  // not claimed, but all primitives of its decomposition are
    static constexpr uint8_t k_offload = 4;  // worth moving here although its weights lie elsewhere
    uint8_t bits = 0;
    bool any() const { return bits & (k_claimed | k_expands); }
    bool claimed() const { return bits & k_claimed; }
    bool offload() const { return bits & k_offload; }
};

class SupportTable {
public:
    SupportTable() = default;
    /// Nothing is supported yet.
    SupportTable(uint32_t devices, size_t nodes) : devices_(devices), rows_(devices * nodes) {}

    /// Values bound to memory that a device can't use are shown to it as if they lay in the type that it computes in:
    /// such a node would run on a copy.
    static Result<SupportTable> ask(const Graph &graph, const DeviceSet &devices, const BoundTypes &bound,
                                    const MemoryReach &reach, Decompositions &formulas);

    NodeSupport at(uint32_t device, NodeId node) const { return rows_[size_t(node) * devices_ + device]; }
    NodeSupport &at(uint32_t device, NodeId node) { return rows_[size_t(node) * devices_ + device]; }

private:
    Status ask_device(uint32_t index, const std::shared_ptr<Device> &device, const Graph &graph,
                      const Lowering::Describe &describe, Decompositions &formulas);

    uint32_t devices_ = 0;
    LargeVector<NodeSupport> rows_;  // [node][device]
};

/// Why a device refuses a node; asks the plugin again, so for messages only.
std::string support_reason(const Graph &graph, const Device &device, NodeId node, Decompositions &formulas);

}  // namespace tenon
