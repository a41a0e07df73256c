#include "sched/lowering.h"

namespace tenon {

Result<const Decomposition *> Decompositions::get(NodeId node) {
    if (auto found = made_.find(node); found != made_.end()) return found->second.formula.get();
    Made made;
    TENON_ASSIGN(auto formula, decompose(graph_, node, &made.why_none));
    if (formula) made.formula = std::make_unique<const Decomposition>(std::move(*formula));
    return static_cast<const Decomposition *>(made_.emplace(node, std::move(made)).first->second.formula.get());
}

const std::string &Decompositions::why_none(NodeId node) const {
    static const std::string none;
    const auto found = made_.find(node);
    return found == made_.end() ? none : found->second.why_none;
}

void Lowering::begin(Describe describe) {
    describe_ = std::move(describe);
    abi_.clear();
    values_.clear();
    nodes_.clear();
    ++round_;
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
    if (locals_[id].round == round_) return locals_[id].number;
    const Value &value = graph_.values()[id];
    // A base is never a view, so that this goes one step down at most.
    const uint32_t base = value.view_of == k_no_value ? TN_NONE : local(value.view_of);
    locals_[id] = {round_, add_value(value, describe_(graph_.base(id)), base, {id, nullptr})};
    return locals_[id].number;
}

void Lowering::add(NodeId id) {
    const Node &node = graph_.nodes()[id];
    inputs_.clear(), outputs_.clear();
    for (ValueId value : node.inputs) inputs_.push_back(local(value));
    for (ValueId value : node.outputs) outputs_.push_back(local(value));
    nodes_.push_back(id);
    abi_.add_node(node, inputs_, outputs_);
}

void Lowering::add(NodeId id, const Decomposition &formula) {
    const Node &node = graph_.nodes()[id];
    numbers_.assign(formula.values.size(), TN_NONE);
    for (size_t i = 0; i < formula.operands.size(); ++i) numbers_[i] = local(formula.operands[i]);
    for (size_t i = 0; i < formula.results.size(); ++i)
        if (formula.results[i] != k_no_value) numbers_[formula.results[i]] = local(node.outputs[i]);

    for (size_t i = formula.operands.size(); i < formula.values.size(); ++i) {
        if (numbers_[i] != TN_NONE) continue;
        Value value = formula.values[i];
        Base base{value.flags & ~TN_VALUE_OBSERVED, nullptr};
        uint32_t view_of = TN_NONE;
        if (value.view_of != k_no_value) {
            view_of = numbers_[value.view_of];
            if (value.view_of < formula.operands.size()) {
                // The operand may be a view itself: its place counts from its own base.
                const ValueId operand = formula.operands[value.view_of];
                value.offset += graph_.values()[operand].offset;
                view_of = local(graph_.base(operand));
                base = describe_(graph_.base(operand));
            }
        }
        numbers_[i] = add_value(value, base, view_of, {k_no_value, &formula.values[i]});
        // The name must outlive the call; the copy above is only this call's.
        abi_.value(numbers_[i]).name = formula.values[i].name.c_str();
    }
    for (const Node &part : formula.nodes) {
        inputs_.clear(), outputs_.clear();
        for (ValueId value : part.inputs) inputs_.push_back(value == k_no_value ? TN_NONE : numbers_[value]);
        for (ValueId value : part.outputs) outputs_.push_back(numbers_[value]);
        nodes_.push_back(id);
        abi_.add_node(part, inputs_, outputs_);
    }
}

}  // namespace tenon
