// Where each weight and state should lie: the first memory in which all its uses are supported.
#include <fmt/format.h>

#include <algorithm>

#include "sched/homes.h"
#include "sched/place.h"

namespace tenon {

namespace {

std::vector<std::vector<NodeId>> users_of_bases(const Graph &graph) {
    std::vector<std::vector<NodeId>> users(graph.values().size());
    auto note = [&](ValueId id, NodeId node) {
        if (id == k_no_value) return;
        auto &list = users[graph.base(id)];
        if (list.empty() || list.back() != node) list.push_back(node);
    };
    for (NodeId node = 0; node < graph.nodes().size(); ++node) {
        for (ValueId id : graph.nodes()[node].inputs) note(id, node);
        for (ValueId id : graph.nodes()[node].outputs) note(id, node);
    }
    return users;
}

}  // namespace

Status Homes::no_home(ValueId id) const {
    const Graph &graph = *graph_;
    const DeviceSet &devices = *devices_;
    const Value &value = graph.values()[id];
    std::string text = fmt::format("no device supports all that is done with '{}' ({} {})", value.name,
                                   dtype_info(value.type).name, to_string(value.shape));
    Decompositions formulas(graph);
    TypeSupport types;
    const BoundTypes unbound(graph.values().size());
    TENON_ASSIGN(const auto reach, MemoryReach::ask(devices, unbound, types));
    TENON_ASSIGN(const auto table, SupportTable::ask(graph, devices, unbound, reach, formulas));
    for (uint32_t d = 0; d < devices.count(); ++d)
        for (NodeId node : users_[id])
            if (!table.at(d, node).any()) {
                text += fmt::format("; {}: '{}': {}", devices.list[d]->name(), graph.nodes()[node].name,
                                    support_reason(graph, *devices.list[d], node, formulas));
                break;
            }
    return Status::unsupported(std::move(text));
}

Result<Homes> Homes::ask(const Graph &graph, const DeviceSet &devices, std::span<const Pin> pins) {
    Homes homes(graph, devices);
    homes.users_ = users_of_bases(graph);
    Decompositions formulas(graph);
    TENON_ASSIGN(const auto pinned, resolve_pins(graph, devices.list, pins));
    TypeSupport types;
    for (uint32_t d = 0; d < devices.count(); ++d) {
        const DeviceSet one{{devices.list[d]}, {devices.types[d]}};
        for (const BufferType &type : devices.list[d]->buffer_types()) {
            BoundTypes bound(graph.values().size());
            for (ValueId id = 0; id < graph.values().size(); ++id)
                if (is_tensor(graph.values()[id])) bound.bind(id, type);
            TENON_ASSIGN(const auto reach, MemoryReach::ask(one, bound, types));
            TENON_ASSIGN(const auto table, SupportTable::ask(graph, one, bound, reach, formulas));
            Candidate candidate{d, type, std::vector<bool>(graph.nodes().size())};
            for (NodeId node = 0; node < graph.nodes().size(); ++node)
                candidate.runs[node] =
                    table.at(0, node).any() && (pinned.empty() || pinned[node] == k_no_value || pinned[node] == d);
            homes.candidates_.push_back(std::move(candidate));
        }
    }
    return homes;
}

Result<TensorHome> Homes::choose(ValueId id, uint32_t first) const {
    const Value &value = graph_->values()[id];
    const auto all = [&](const Candidate &c) {
        return std::ranges::all_of(users_[id], [&](NodeId n) { return c.runs[n]; }) &&
               !(c.type.is_packed() && value.flags & TN_VALUE_STATE);
    };
    const auto some = [&](const Candidate &c) {
        return std::ranges::any_of(users_[id], [&](NodeId n) { return c.runs[n]; });
    };
    auto home = std::ranges::find_if(candidates_, [&](const Candidate &c) { return c.device >= first && all(c); });
    if (home == candidates_.end()) home = std::ranges::find_if(candidates_, all);
    // A weight whose uses no single device takes (pins, mostly) lies with the first that takes one; others get copies.
    if (home == candidates_.end() && value.flags & TN_VALUE_WEIGHT) home = std::ranges::find_if(candidates_, some);
    if (home == candidates_.end()) return no_home(id);
    return TensorHome{id, home->device, home->type};
}

Result<std::vector<TensorHome>> Homes::choose_all() const {
    std::vector<TensorHome> homes;
    for (ValueId id = 0; id < graph_->values().size(); ++id) {
        if (!is_tensor(graph_->values()[id])) continue;
        TENON_ASSIGN(TensorHome home, choose(id));
        homes.push_back(std::move(home));
    }
    return homes;
}

}  // namespace tenon
