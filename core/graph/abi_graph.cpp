#include "graph/abi_graph.h"

#include <algorithm>
#include <cstring>

namespace tenon {

uint32_t AbiGraph::add_value(const Value &value, uint32_t flags, uint32_t view_of, uint32_t buffer_type) {
    tn_value out = describe(value.type, value.shape, value.name.c_str());
    std::copy(value.stride_bytes.begin(), value.stride_bytes.end(), out.stride_bytes);
    out.flags = flags;
    out.view_of = view_of;
    out.offset = view_of == TN_NONE ? 0 : value.offset;
    out.buffer_type = buffer_type;
    values_.push_back(out);
    return uint32_t(values_.size() - 1);
}

uint32_t AbiGraph::add_node(const Node &node, std::span<const uint32_t> inputs, std::span<const uint32_t> outputs) {
    tn_node out{};
    out.struct_size = TN_SIZE_NODE;
    out.op = node.op;
    out.precision = uint32_t(node.precision);
    out.params = node.params.data();
    out.input_count = uint32_t(inputs.size());
    out.output_count = uint32_t(outputs.size());
    operands_.append(inputs);
    operands_.append(outputs);
    nodes_.push_back(out);
    return uint32_t(nodes_.size() - 1);
}

void AbiGraph::reserve(size_t values, size_t nodes, size_t operands) {
    values_.reserve(values);
    nodes_.reserve(nodes);
    operands_.reserve(operands);
}

uint32_t AbiGraph::add_buffer_type(const tn_buffer_type_info &info) {
    auto same = [&](const tn_buffer_type_info &other) {
        return std::strcmp(info.name, other.name) == 0 && std::memcmp(info.owner, other.owner, sizeof info.owner) == 0;
    };
    const auto found = std::ranges::find_if(buffer_types_, same);
    if (found != buffer_types_.end()) return uint32_t(found - buffer_types_.begin());
    buffer_types_.push_back(info);
    return uint32_t(buffer_types_.size() - 1);
}

void AbiGraph::clear() {
    values_.clear();
    nodes_.clear();
    operands_.clear();
    linked_nodes_ = linked_operands_ = 0;
    buffer_types_.clear();
}

const tn_graph &AbiGraph::view() {
    if (linked_to_ != operands_.data()) linked_nodes_ = linked_operands_ = 0, linked_to_ = operands_.data();
    for (; linked_nodes_ < nodes_.size(); ++linked_nodes_) {
        tn_node &node = nodes_[linked_nodes_];
        node.inputs = linked_to_ + linked_operands_;
        node.outputs = node.inputs + node.input_count;
        linked_operands_ += size_t(node.input_count) + node.output_count;
    }
    view_ = {};
    view_.struct_size = TN_SIZE_GRAPH;
    view_.values = values_.data();
    view_.value_count = values_.size();
    view_.value_stride = sizeof(tn_value);
    view_.nodes = nodes_.data();
    view_.node_count = nodes_.size();
    view_.node_stride = sizeof(tn_node);
    view_.buffer_types = buffer_types_.data();
    view_.buffer_type_count = buffer_types_.size();
    view_.buffer_type_stride = sizeof(tn_buffer_type_info);
    return view_;
}

}  // namespace tenon
