// What the scheduler's passes ask of values over and over, close together: a Value is some 200 bytes, and a pass that
// looks at operands' bases and flags there misses the cache for each.
#pragma once

#include <span>
#include <vector>

#include "tenon/graph.h"

namespace tenon {

struct ValueTable {
    explicit ValueTable(const Graph &graph) : base(graph.bases()) {
        flags.reserve(graph.values().size());
        for (const Value &value : graph.values()) flags.push_back(value.flags);
        for (const Node &node : graph.nodes())
            for (ValueId output : node.outputs) changes_in_place = changes_in_place || base[output] != output;
    }
    bool is_base(ValueId id) const { return base[id] == id; }

    std::span<const ValueId> base;  // per value: itself, or the base whose bytes it shares
    std::vector<uint32_t> flags;    // TN_VALUE_
    bool changes_in_place = false;  // some node's output is a view of what was there before
};

}  // namespace tenon
