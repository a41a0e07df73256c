// Writes nodes of a graph as a plugin gets to see them: claimed nodes as they are, others by their decomposition, views
// as values. Remembers where each value and node came from.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "graph/abi_graph.h"
#include "graph/decompose.h"
#include "tenon/graph.h"

namespace tenon {

/// The decompositions of a graph's nodes, each made once, at addresses that stay.
class Decompositions {
public:
    explicit Decompositions(Graph graph) : graph_(std::move(graph)) {}
    /// Null where the node's op has no formula.
    Result<const Decomposition *> get(NodeId node);

private:
    Graph graph_;
    std::map<NodeId, std::unique_ptr<const Decomposition>> made_;
};

class Lowering {
public:
    /// What the device is told of a base value.
    struct Base {
        uint32_t flags = 0;
        const tn_buffer_type_info *buffer_type = nullptr;  // null: the device's default
    };
    using Describe = std::function<Base(ValueId base)>;

    Lowering(const Graph &graph, Describe describe) : graph_(graph), describe_(std::move(describe)) {}

    /// Appends a node whole. Answers the number of its first (and only) node here.
    uint32_t add(NodeId node);
    /// Appends a node's decomposition, which must outlive this. Answers the number of its first node here.
    uint32_t add(NodeId node, const Decomposition &formula);

    AbiGraph &graph() { return abi_; }

    /// Where a value came from: one of the graph, or one that a decomposition made (then `made` describes it).
    struct Origin {
        ValueId value = k_no_value;
        const Value *made = nullptr;
    };
    const std::vector<Origin> &values() const { return values_; }
    /// The graph's node behind each node here.
    const std::vector<NodeId> &nodes() const { return nodes_; }

private:
    uint32_t local(ValueId id);
    uint32_t add_value(const Value &value, Base base, uint32_t view_of, Origin origin);

    const Graph &graph_;
    Describe describe_;
    AbiGraph abi_;
    std::map<ValueId, uint32_t> locals_;
    std::vector<Origin> values_;
    std::vector<NodeId> nodes_;
};

}  // namespace tenon
