// A graph as plugins see it: flat arrays of plain values (tn_graph). Holds indices and numbers only; names and params
// stay with whoever gave them and must outlive it.
#pragma once

#include <deque>
#include <vector>

#include "tenon/graph.h"

namespace tenon {

class AbiGraph {
public:
    /// Appends a value as it is in the graph: `view_of` is kept as a number of *this* graph, given by the caller.
    uint32_t add_value(const Value &value, uint32_t flags, uint32_t view_of, uint32_t buffer_type = TN_NONE);
    /// `inputs` and `outputs` number values of this graph (k_no_value: absent).
    uint32_t add_node(const Node &node, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs);
    /// The index of a buffer type's description; equal names and owners share one.
    uint32_t add_buffer_type(const tn_buffer_type_info &info);

    /// Forgets everything, keeps the memory.
    void clear();
    tn_value &value(uint32_t index) { return values_[index]; }
    size_t value_count() const { return values_.size(); }
    size_t node_count() const { return nodes_.size(); }
    /// Valid until the next add.
    const tn_graph &view();

private:
    std::vector<tn_value> values_;
    std::vector<tn_node> nodes_;
    std::deque<std::vector<uint32_t>> operands_;  // addresses stay as it grows
    std::vector<tn_buffer_type_info> buffer_types_;
    tn_graph view_{};
};

}  // namespace tenon
