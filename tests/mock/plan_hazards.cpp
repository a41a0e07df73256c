#include "plan_hazards.h"

#include "memory.h"

namespace mock {
namespace {

/// The shadow of the buffer that a place is in; null where nobody checks.
Shadow *shadow_of(const RunView &run, const Place &place) {
    if (place.binding == TN_NONE) return nullptr;
    Buffer *buffer = run.set().bindings[place.binding].buffer;
    return buffer != nullptr ? static_cast<MockBuffer *>(buffer)->shadow() : nullptr;
}

std::string_view where(const RunView &run, const Place &place) {
    return run.set().bindings[place.binding].buffer->type().view().name;
}

/// The ABI's nodes have no names: the first output's is the node's.
std::string describe(const GraphView &graph, const NodeView &node) {
    const OpInfo *op = find_op(node.op);
    const std::string_view name = node.outputs.empty() ? "" : graph.value(node.outputs[0]).name;
    return join("node '", name, "' (", op != nullptr ? op->name : "vendor op", ")");
}

}  // namespace

PlanHazards::PlanHazards(Names &names, const Plan &plan) : names_(names), plan_(plan) {
    const GraphView &graph = plan.graph();
    std::vector<bool> made(graph.values().size(), false);
    for (const NodeView &node : graph.nodes()) {
        for (uint32_t v : node.outputs) made[graph.base(v)] = true;
    }
    expected_.resize(graph.values().size());
    for (const ValueView &v : graph.values()) {
        if (v.view_of != TN_NONE) continue;
        Expected &expected = expected_[v.index];
        const bool own = v.flags == 0 && made[v.index];
        expected.tag.name = own ? names.add(join(v.name, " (seen by its segment only)")) : names.id(v.name);
        expected.lasts = v.has(TN_VALUE_WEIGHT | TN_VALUE_STATE);
        expected.may_be_unwritten = v.has(TN_VALUE_STATE);
        expected.outside = !made[v.index] || expected.lasts;
    }
    for (const ValueView &v : graph.values()) {
        if (v.view_of != TN_NONE) expected_[v.index] = expected_[v.view_of];
    }
    unstored_.assign(graph.values().size(), false);
    for (uint32_t v : plan.unstored) unstored_[v] = true;
    for (const Plan::Group &group : plan.groups) {
        scratch_names_.push_back(
            group.scratch_bytes == 0 ? Names::kNothing : names.add(join("scratch of group ", scratch_names_.size())));
    }
}

void PlanHazards::placed() {
    const GraphView &graph = plan_.graph();
    std::vector<uint32_t> writer(graph.values().size(), TN_NONE);
    for (const NodeView &node : graph.nodes()) {
        for (uint32_t v : node.outputs) writer[v] = plan_.node_groups[node.index];
    }
    reused_in_.assign(graph.values().size(), TN_NONE);
    for (const Plan::InPlace &pair : plan_.in_place) {
        const Place out = plan_.place_of(pair.output), in = plan_.place_of(pair.input);
        if (out.binding == in.binding && out.offset == in.offset) reused_in_[pair.input] = writer[pair.output];
    }
}

bool PlanHazards::is_stored(uint32_t v) const {
    return v != TN_NONE && !unstored_[v] && !value(v).is_empty();
}

void PlanHazards::check(const NodeView &node, uint32_t v, const RunView &run) const {
    const Place place = plan_.place_of(v);
    const Shadow *shadow = shadow_of(run, place);
    if (shadow == nullptr) return;
    Expected expected = expected_[v];
    expected.tag.token = short_token(run.cancel_token());
    if (const auto hazard = shadow->find(value(v), place.offset, expected)) {
        report(names_, *hazard, expected, describe(plan_.graph(), node), value(v).name, where(run, place));
    }
}

void PlanHazards::begin(uint32_t group, const RunView &run) const {
    const Place place = plan_.scratch_place(group);
    if (Shadow *shadow = shadow_of(run, place)) {
        shadow->write(place.offset, plan_.groups[group].scratch_bytes,
                      {scratch_names_[group], short_token(run.cancel_token())});
    }
}

void PlanHazards::check_inputs(const NodeView &node, const RunView &run) const {
    for (uint32_t v : node.inputs) {
        if (is_stored(v)) check(node, v, run);
    }
}

void PlanHazards::mark_outputs(const NodeView &node, const RunView &run) const {
    for (uint32_t v : node.outputs) {
        const Place place = plan_.place_of(v);
        Shadow *shadow = is_stored(v) ? shadow_of(run, place) : nullptr;
        if (shadow == nullptr) continue;
        shadow->write(value(v), place.offset, {expected_[v].tag.name, short_token(run.cancel_token())});
    }
}

/// What a group reads and its scratch live to its end, what it writes lives from its start: none of them may have been
/// overwritten by another, except where an offer was taken.
void PlanHazards::end(uint32_t group, std::span<const uint32_t> nodes, const RunView &run) const {
    for (uint32_t n : nodes) {
        const NodeView &node = plan_.graph().node(n);
        for (const auto &list : {node.inputs, node.outputs}) {
            for (uint32_t v : list) {
                if (is_stored(v) && reused_in_[v] != group) check(node, v, run);
            }
        }
    }
    const Place place = plan_.scratch_place(group);
    const Shadow *shadow = shadow_of(run, place);
    if (shadow == nullptr) return;
    const Expected expected{.tag = {scratch_names_[group], short_token(run.cancel_token())}};
    if (const auto hazard = shadow->find(place.offset, plan_.groups[group].scratch_bytes, expected)) {
        report(names_, *hazard, expected, describe(plan_.graph(), plan_.graph().node(nodes.back())), "scratch",
               where(run, place));
    }
}

}  // namespace mock
