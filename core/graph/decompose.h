// A composite node as primitives: the formula of its op's file, or of the plugin that brought a vendor op.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tenon/graph.h"

namespace tenon {

/// Values and nodes of one node's formula, numbered apart from the graph. The first values stand for the node's
/// operands; views of those lie in the operand's bytes. Holds all that its values and nodes point to.
struct Decomposition {
    Graph graph;   // what the operands point to
    Arena memory;  // what the rest points to
    FlatArray<Value> values;
    FlatArray<Node> nodes;
    std::vector<ValueId> operands;  // the graph's value behind each of the first values
    std::vector<ValueId> results;  // per output of the node, contiguous and made by a node of its own; k_no_value where
                                   // the output is an input changed in place
};

/// Nothing where the op has no formula. A vendor op whose formula fails, is half or gives other values than its infer
/// function said counts as one without: `why_none`, which may be null, then gets the reason (else it is left alone).
/// Errors name the node.
Result<std::optional<Decomposition>> decompose(const Graph &graph, NodeId node, std::string *why_none = nullptr);

}  // namespace tenon
