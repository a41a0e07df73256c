// Which device can run which node, asked once per graph and device: a node is supported where the device claims it or
// supports its whole decomposition.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sched/lowering.h"
#include "tenon/device.h"
#include "tenon/graph.h"

namespace tenon {

using DeviceList = std::vector<std::shared_ptr<Device>>;

/// The buffer type in which each base value already lies; null: in none yet. One per value of the graph.
using BoundTypes = std::vector<std::shared_ptr<const BufferType>>;

struct NodeSupport {
    bool claimed = false;
    bool expands = false;  // not claimed, but all primitives of its decomposition are
    bool offload = false;
    bool any() const { return claimed || expands; }
};

/// Whether devices can use memory of a type in place; asked once for each pair.
class TypeSupport {
public:
    Result<bool> supports(const std::shared_ptr<Device> &device, const BufferType &type);

private:
    struct Row {
        const Device *device;
        BufferType type;
        bool answer;
    };
    std::vector<Row> rows_;
};

class SupportTable {
public:
    /// Values bound to memory that a device can't use are shown to it as if they lay in its default type: such a node
    /// would run on a copy.
    static Result<SupportTable> ask(const Graph &graph, const DeviceList &devices, const BoundTypes &bound,
                                    TypeSupport &types, Decompositions &formulas);

    NodeSupport at(uint32_t device, NodeId node) const { return rows_[device][node]; }
    /// Why a device refuses a node; asks the plugin again, so for messages only.
    std::string reason(const Graph &graph, const std::shared_ptr<Device> &device, NodeId node,
                       Decompositions &formulas) const;

private:
    std::vector<std::vector<NodeSupport>> rows_;
};

}  // namespace tenon
