#include "sched/place.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/pattern.h"
#include "registry/manifest.h"

namespace tenon {

std::string_view reason_code(Reason reason) noexcept {
    switch (reason) {
        case Reason::none: return "";
        case Reason::usr: return "usr";
        case Reason::dst: return "1.dst";
        case Reason::vsrc_bound: return "1.vsrc";
        case Reason::inp: return "1.inp";
        case Reason::off: return "1.off";
        case Reason::wgt: return "1.wgt";
        case Reason::sup: return "2.sup";
        case Reason::best: return "3.best";
        case Reason::upg: return "3.upg";
        case Reason::vsrc: return "4.vsrc";
        case Reason::cur: return "4.cur";
        case Reason::cpy: return "4.cpy";
    }
    return "";
}

namespace {

/// "cpu" and "cpu:0" are one device, in letters of any size.
bool same_device(std::string_view a, std::string_view b) {
    const auto first = parse_device_name(a), second = parse_device_name(b);
    return first && second && first->base == second->base && first->index.value_or(0) == second->index.value_or(0);
}

/// Works through the steps; `nodes` and `values` are what the later steps see of the earlier ones.
class Placer {
public:
    explicit Placer(const PlaceInput &input) : in_(input), fallback_(uint32_t(input.devices.size() - 1)) {
        out_.nodes.resize(in_.graph.nodes().size());
        out_.values.resize(in_.graph.values().size());
    }

    Result<Placement> run() {
        TENON_TRY(take_pins());
        start_from_memory();
        spread(true, true), spread(true, false), spread(false, true), spread(false, false);
        TENON_TRY(settle_nodes());
        settle_values();
        return std::move(out_);
    }

private:
    uint32_t devices() const { return uint32_t(in_.devices.size()); }
    bool supports(uint32_t device, NodeId node) const { return in_.support.at(device, node).any(); }
    const Value &value(ValueId id) const { return in_.graph.values()[id]; }
    void assign(NodeId node, uint32_t device, Reason reason) {
        out_.nodes[node] = {device, reason};
        for (ValueId id : in_.graph.nodes()[node].outputs) out_.values[id] = {device, reason};
    }
    bool open(NodeId node) const { return out_.nodes[node].device == k_no_value; }

    Status take_pins() {
        for (NodeId node = 0; node < out_.nodes.size(); ++node) {
            const uint32_t device = in_.pinned[node];
            if (device == k_no_value) continue;
            if (!supports(device, node))
                return Status::unsupported(
                    fmt::format("node '{}' is pinned to {}, which doesn't support it: {}", in_.graph.nodes()[node].name,
                                in_.devices[device]->name(),
                                in_.support.reason(in_.graph, in_.devices[device], node, in_.formulas)));
            assign(node, device, Reason::usr);
        }
        return {};
    }

    /// The first device that can use the memory in which a bound value lies and runs the node.
    uint32_t at_memory(NodeId node, ValueId base) const {
        for (uint32_t device = 0; device < devices(); ++device)
            if (in_.reach.of_bound[device][base] && supports(device, node)) return device;
        return k_no_value;
    }

    uint32_t lies_on(ValueId base) const {
        for (uint32_t device = 0; device < devices(); ++device)
            if (in_.reach.of_bound[device][base]) return device;
        return k_no_value;
    }

    /// Step 1: what already lies somewhere decides.
    void start_from_memory() {
        for (ValueId id = 0; id < out_.values.size(); ++id) {
            const Value &v = value(id);
            if (v.view_of == k_no_value && in_.bound[id]) out_.values[id] = {lies_on(id), Reason::dst};
            if (v.flags & TN_VALUE_INPUT) out_.values[id] = {fallback_, Reason::inp};
        }
        for (NodeId id = 0; id < out_.nodes.size(); ++id) {
            if (!open(id)) continue;
            const Node &node = in_.graph.nodes()[id];
            if (place_at_state(id, node)) continue;
            const auto weight = std::ranges::find_if(node.inputs, [&](ValueId input) {
                if (input == k_no_value) return false;
                const ValueId base = in_.graph.base(input);
                return (value(base).flags & TN_VALUE_WEIGHT) && in_.bound[base];
            });
            if (weight != node.inputs.end()) place_at_weight(id, in_.graph.base(*weight));
        }
    }

    /// A state is never carried away: whoever changes or reads it goes where it lies.
    bool place_at_state(NodeId id, const Node &node) {
        auto is_state = [&](ValueId v) {
            return v != k_no_value && (value(in_.graph.base(v)).flags & TN_VALUE_STATE) && in_.bound[in_.graph.base(v)];
        };
        const auto changed = std::ranges::find_if(node.outputs, is_state);
        const auto read = std::ranges::find_if(node.inputs, is_state);
        if (changed == node.outputs.end() && read == node.inputs.end()) return false;
        const bool changes = changed != node.outputs.end();
        const uint32_t device = at_memory(id, in_.graph.base(changes ? *changed : *read));
        if (device != k_no_value) assign(id, device, changes ? Reason::vsrc_bound : Reason::dst);
        return true;
    }

    void place_at_weight(NodeId id, ValueId weight) {
        uint32_t device = at_memory(id, weight);
        Reason reason = Reason::wgt;
        if (lies_on(weight) == fallback_) {
            for (uint32_t higher = 0; higher < fallback_; ++higher) {
                if (!supports(higher, id) || !in_.support.at(higher, id).offload) continue;
                device = higher, reason = Reason::off;
                break;
            }
        }
        if (device != k_no_value) assign(id, device, reason);
    }

    /// Step 2: one sweep. Without `any`, a node on the fallback device ends the spread.
    void spread(bool higher_only, bool down) {
        uint32_t current = k_no_value;
        const NodeId count = NodeId(out_.nodes.size());
        for (NodeId i = 0; i < count; ++i) {
            const NodeId node = down ? i : count - 1 - i;
            if (!open(node))
                current = higher_only && out_.nodes[node].device == fallback_ ? k_no_value : out_.nodes[node].device;
            else if (current != k_no_value && supports(current, node) && can_touch(current, node))
                assign(node, current, Reason::sup);
        }
    }

    /// Whether no state that the node touches, and nothing that it changes in place, lies out of the device's reach.
    bool can_touch(uint32_t device, NodeId id) const {
        const Node &node = in_.graph.nodes()[id];
        auto reachable = [&](ValueId v) {
            if (v == k_no_value) return true;
            const ValueId base = in_.graph.base(v);
            return !(value(base).flags & TN_VALUE_STATE) || !in_.bound[base] || in_.reach.of_bound[device][base];
        };
        auto changeable = [&](ValueId v) {
            const ValueId base = in_.graph.base(v);
            return base == v || in_.bound[base] || out_.values[base].device == k_no_value || in_reach(device, v);
        };
        return std::ranges::all_of(node.inputs, reachable) && std::ranges::all_of(node.outputs, reachable) &&
               std::ranges::all_of(node.outputs, changeable);
    }

    bool in_reach(uint32_t device, ValueId id) const {
        const ValueId base = in_.graph.base(id);
        if (in_.bound[base]) return in_.reach.of_bound[device][base];
        const uint32_t owner = out_.values[base].device;
        return owner != k_no_value && in_.reach.of_device[device][owner];
    }

    /// Step 3: open nodes go where most of their inputs are; others move up where nothing has to be copied for it.
    Status settle_nodes() {
        for (NodeId id = 0; id < out_.nodes.size(); ++id) {
            const Node &node = in_.graph.nodes()[id];
            const bool pinned = out_.nodes[id].reason == Reason::usr;
            if (open(id) || (!pinned && !can_touch(out_.nodes[id].device, id))) {
                TENON_TRY(choose_best(id, node));
            } else if (!pinned) {
                move_up(id, node);
            }
        }
        return {};
    }

    Status choose_best(NodeId id, const Node &node) {
        uint32_t best = k_no_value;
        std::ptrdiff_t most = -1;
        for (uint32_t device = 0; device < devices(); ++device) {
            if (!supports(device, id) || !can_touch(device, id)) continue;
            const auto near =
                std::ranges::count_if(node.inputs, [&](ValueId v) { return v != k_no_value && in_reach(device, v); });
            if (near > most) best = device, most = near;
        }
        if (best == k_no_value) return refuse(id);
        assign(id, best, Reason::best);
        return {};
    }

    void move_up(NodeId id, const Node &node) {
        const uint32_t now = out_.nodes[id].device;
        for (uint32_t higher = 0; higher < now; ++higher) {
            const BufferType own = in_.devices[now]->default_buffer_type(),
                             other = in_.devices[higher]->default_buffer_type();
            if (!(own == other) || !supports(higher, id) || !can_touch(higher, id)) continue;
            if (!std::ranges::all_of(node.inputs, [&](ValueId v) { return v == k_no_value || in_reach(higher, v); }))
                continue;
            assign(id, higher, Reason::upg);
            return;
        }
    }

    Status refuse(NodeId id) const {
        const Node &node = in_.graph.nodes()[id];
        std::string types;
        for (ValueId v : node.inputs)
            if (v != k_no_value)
                types += fmt::format("{}{}", types.empty() ? "" : ", ", dtype_info(value(v).type).name);
        std::string text =
            fmt::format("no device supports node '{}': {}({})", node.name, in_.graph.op(node).name, types);
        for (uint32_t device = 0; device < devices(); ++device) {
            std::string why = supports(device, id)
                                  ? "it can't reach the state where it lies"
                                  : in_.support.reason(in_.graph, in_.devices[device], id, in_.formulas);
            text += fmt::format("; {}: {}", in_.devices[device]->name(), why);
        }
        return Status::unsupported(std::move(text));
    }

    /// Step 4: views go with their source, what is still open with whoever reads it first.
    void settle_values() {
        for (NodeId id = 0; id < out_.nodes.size(); ++id)
            for (ValueId v : in_.graph.nodes()[id].inputs)
                if (v != k_no_value && out_.values[in_.graph.base(v)].device == k_no_value)
                    out_.values[in_.graph.base(v)] = {out_.nodes[id].device, Reason::cur};
        for (ValueId id = 0; id < out_.values.size(); ++id)
            if (value(id).view_of != k_no_value && out_.values[id].device == k_no_value)
                out_.values[id] = {out_.values[value(id).view_of].device, Reason::vsrc};
    }

    const PlaceInput &in_;
    const uint32_t fallback_;
    Placement out_;
};

}  // namespace

Result<Pin> Pin::parse(std::string_view text) {
    const size_t at = text.rfind('=');
    if (at == std::string_view::npos || at == 0 || at + 1 == text.size())
        return Status::invalid_argument(fmt::format("pin '{}' isn't REGEX=DEVICE", text));
    Pin pin{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
    if (auto pattern = Pattern::compile(pin.pattern); !pattern.ok()) return std::move(pattern).status().in("pin");
    return pin;
}

Result<std::vector<uint32_t>> resolve_pins(const Graph &graph, const DeviceList &devices, std::span<const Pin> pins) {
    std::vector<uint32_t> pinned(graph.nodes().size(), k_no_value);
    for (const Pin &pin : pins) {
        const auto device =
            std::ranges::find_if(devices, [&](const auto &d) { return same_device(d->name(), pin.device); });
        if (device == devices.end())
            return Status::not_found(fmt::format("pin '{}={}': no such device in the list", pin.pattern, pin.device));
        TENON_ASSIGN(const Pattern pattern, Pattern::compile(pin.pattern));
        for (NodeId node = 0; node < pinned.size(); ++node) {
            if (pinned[node] != k_no_value) continue;
            TENON_ASSIGN(const bool found, pattern.found_in(graph.nodes()[node].name));
            if (found) pinned[node] = uint32_t(device - devices.begin());
        }
    }
    return pinned;
}

Result<MemoryReach> MemoryReach::ask(const DeviceList &devices, const BoundTypes &bound, TypeSupport &types) {
    MemoryReach reach;
    for (const auto &device : devices) {
        auto &owners = reach.of_device.emplace_back(devices.size());
        for (size_t i = 0; i < devices.size(); ++i) {
            TENON_ASSIGN(const bool usable, types.supports(device, devices[i]->default_buffer_type()));
            owners[i] = usable || devices[i] == device;
        }
        auto &values = reach.of_bound.emplace_back(bound.size());
        for (size_t i = 0; i < bound.size(); ++i) {
            if (!bound[i]) continue;
            TENON_ASSIGN(const bool usable, types.supports(device, *bound[i]));
            values[i] = usable;
        }
    }
    return reach;
}

Result<Placement> place(const PlaceInput &input) {
    return Placer(input).run();
}

}  // namespace tenon
