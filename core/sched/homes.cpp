// Where each weight and state should lie: the first memory in which all its uses are supported.
#include <fmt/format.h>

#include <algorithm>

#include "sched/homes.h"
#include "sched/place.h"

namespace tenon {

namespace {

struct Candidate {
    uint32_t device;
    BufferType type;
    std::vector<bool> runs;  // per node: supported there, and not pinned elsewhere
};

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

Status no_home(const Graph &graph, ValueId id, const std::vector<NodeId> &users, const DeviceSet &devices) {
    const Value &value = graph.values()[id];
    std::string text = fmt::format("no device supports all that is done with '{}' ({} {})", value.name,
                                   dtype_info(value.type).name, to_string(value.shape));
    Decompositions formulas(graph);
    TypeSupport types;
    const BoundTypes unbound(graph.values().size());
    TENON_ASSIGN(const auto reach, MemoryReach::ask(devices, unbound, types));
    TENON_ASSIGN(const auto table, SupportTable::ask(graph, devices, unbound, reach, formulas));
    for (uint32_t d = 0; d < devices.count(); ++d)
        for (NodeId node : users)
            if (!table.at(d, node).any()) {
                text += fmt::format("; {}: '{}': {}", devices.list[d]->name(), graph.nodes()[node].name,
                                    support_reason(graph, *devices.list[d], node, formulas));
                break;
            }
    return Status::unsupported(std::move(text));
}

}  // namespace

Result<std::vector<TensorHome>> choose_homes(const Graph &graph, const DeviceSet &devices, std::span<const Pin> pins) {
    Decompositions formulas(graph);
    TENON_ASSIGN(const auto pinned, resolve_pins(graph, devices.list, pins));
    TypeSupport types;
    std::vector<Candidate> candidates;
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
            candidates.push_back(std::move(candidate));
        }
    }
    const auto users = users_of_bases(graph);
    std::vector<TensorHome> homes;
    for (ValueId id = 0; id < graph.values().size(); ++id) {
        const Value &value = graph.values()[id];
        if (!is_tensor(value)) continue;
        auto all = [&](const Candidate &c) {
            return std::ranges::all_of(users[id], [&](NodeId n) { return c.runs[n]; }) &&
                   !(c.type.is_packed() && value.flags & TN_VALUE_STATE);
        };
        auto some = [&](const Candidate &c) {
            return std::ranges::any_of(users[id], [&](NodeId n) { return c.runs[n]; });
        };
        auto home = std::ranges::find_if(candidates, all);
        // A weight whose uses no single device takes (pins, mostly) lies with the first that takes one; others get
        // copies.
        if (home == candidates.end() && value.flags & TN_VALUE_WEIGHT) home = std::ranges::find_if(candidates, some);
        if (home == candidates.end()) return no_home(graph, id, users[id], devices);
        homes.push_back({id, home->device, home->type});
    }
    return homes;
}

}  // namespace tenon
