// What the scheduler's passes ask of values over and over.
#pragma once

#include <span>

#include "tenon/graph.h"

namespace tenon {

/// A graph's flat tables side by side. Valid as long as the graph.
struct ValueTable {
    explicit ValueTable(const Graph &graph)
        : base(graph.bases()), flags(graph.flags()), changes_in_place(graph.changes_in_place()) {}
    bool is_base(ValueId id) const { return base[id] == id; }

    std::span<const ValueId> base;    // per value: itself, or the base whose bytes it shares
    std::span<const uint32_t> flags;  // per value: TN_VALUE_
    bool changes_in_place;            // some node's output is a view of what was there before
};

}  // namespace tenon
