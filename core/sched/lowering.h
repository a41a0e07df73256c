// Writes nodes of a graph as a plugin gets to see them: claimed nodes as they are, others by their decomposition, views
// as values. Remembers where each value and node came from.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
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
    /// Why a vendor op's formula was refused in `get`; empty where it has none or it is good.
    const std::string &why_none(NodeId node) const;

private:
    struct Made {
        std::unique_ptr<const Decomposition> formula;
        std::string why_none;
    };
    Graph graph_;
    std::unordered_map<NodeId, Made> made_;
};

/// Used for one list of nodes after the other: its tables have an entry per value of the graph and are made once.
class Lowering {
public:
    /// What the device is told of a base value.
    struct Base {
        uint32_t flags = 0;
        const tn_buffer_type_info *buffer_type = nullptr;  // null: what the device computes in
    };
    using Describe = std::function<Base(ValueId base)>;

    explicit Lowering(const Graph &graph) : graph_(graph), locals_(graph.values().size()) {}

    /// Forgets what was added. `describe` is called until the next begin.
    void begin(Describe describe);
    /// Appends a node whole.
    void add(NodeId node);
    /// Appends a node's decomposition, which must outlive this.
    void add(NodeId node, const Decomposition &formula);

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
    /// The number of a value here counts only if it was given in this round.
    struct Local {
        uint32_t round = 0, number = 0;
    };
    uint32_t local(ValueId id);
    uint32_t add_value(const Value &value, Base base, uint32_t view_of, Origin origin);

    const Graph &graph_;
    Describe describe_;
    AbiGraph abi_;
    uint32_t round_ = 0;
    std::vector<Local> locals_;  // per value of the graph
    std::vector<Origin> values_;
    std::vector<NodeId> nodes_;
    std::vector<uint32_t> inputs_, outputs_, numbers_;  // of the node at hand
};

}  // namespace tenon
