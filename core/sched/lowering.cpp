#include "sched/lowering.h"

namespace tenon {

Result<const Decomposition *> Decompositions::get(NodeId node) {
    if (auto found = made_.find(node); found != made_.end()) return found->second.get();
    TENON_ASSIGN(auto formula, decompose(graph_, node));
    auto &slot = made_[node];
    if (formula) slot = std::make_unique<const Decomposition>(std::move(*formula));
    return static_cast<const Decomposition *>(slot.get());
}

uint32_t Lowering::add_value(const Value &value, Base base, uint32_t view_of, Origin origin) {
    const uint32_t type = base.buffer_type ? abi_.add_buffer_type(*base.buffer_type) : TN_NONE;
    // "Observed" is said of bases; the other flags hold for a view as for its base.
    const uint32_t flags = view_of == TN_NONE ? base.flags : base.flags & ~TN_VALUE_OBSERVED;
    values_.push_back(origin);
    return abi_.add_value(value, flags, view_of, type);
}

uint32_t Lowering::local(ValueId id) {
    if (id == k_no_value) return TN_NONE;
    if (auto found = locals_.find(id); found != locals_.end()) return found->second;
    const Value &value = graph_.values()[id];
    const uint32_t base = value.view_of == k_no_value ? TN_NONE : local(value.view_of);
    const uint32_t number = add_value(value, describe_(graph_.base(id)), base, {id, nullptr});
    locals_.emplace(id, number);
    return number;
}

uint32_t Lowering::add(NodeId id) {
    const Node &node = graph_.nodes()[id];
    std::vector<uint32_t> inputs, outputs;
    for (ValueId value : node.inputs) inputs.push_back(local(value));
    for (ValueId value : node.outputs) outputs.push_back(local(value));
    nodes_.push_back(id);
    return abi_.add_node(node, inputs, outputs);
}

uint32_t Lowering::add(NodeId id, const Decomposition &formula) {
    const Node &node = graph_.nodes()[id];
    std::vector<uint32_t> numbers(formula.values.size(), TN_NONE);
    for (size_t i = 0; i < formula.operands.size(); ++i) numbers[i] = local(formula.operands[i]);
    for (size_t i = 0; i < formula.results.size(); ++i)
        if (formula.results[i] != k_no_value) numbers[formula.results[i]] = local(node.outputs[i]);

    for (size_t i = formula.operands.size(); i < formula.values.size(); ++i) {
        if (numbers[i] != TN_NONE) continue;
        Value value = formula.values[i];
        Base base{value.flags & ~TN_VALUE_OBSERVED, nullptr};
        uint32_t view_of = TN_NONE;
        if (value.view_of != k_no_value) {
            view_of = numbers[value.view_of];
            if (value.view_of < formula.operands.size()) {
                // The operand may be a view itself: its place counts from its own base.
                const Value &operand = graph_.values()[formula.operands[value.view_of]];
                value.offset += operand.offset;
                view_of = local(graph_.base(formula.operands[value.view_of]));
                base = describe_(graph_.base(formula.operands[value.view_of]));
            }
        }
        numbers[i] = add_value(value, base, view_of, {k_no_value, &formula.values[i]});
        // The name must outlive the call; the copy above is only this call's.
        abi_.value(numbers[i]).name = formula.values[i].name.c_str();
    }
    const uint32_t first = uint32_t(abi_.node_count());
    for (const Node &part : formula.nodes) {
        std::vector<uint32_t> inputs, outputs;
        for (ValueId value : part.inputs) inputs.push_back(value == k_no_value ? TN_NONE : numbers[value]);
        for (ValueId value : part.outputs) outputs.push_back(numbers[value]);
        nodes_.push_back(id);
        abi_.add_node(part, inputs, outputs);
    }
    return first;
}

}  // namespace tenon
