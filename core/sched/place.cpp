#include "sched/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

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

/// Works through the steps; `nodes` and `values` are what the later steps see of the earlier ones.
class Placer {
public:
    explicit Placer(const PlaceInput &input)
        : in_(input),
          graph_(input.graph),
          values_(input.values),
          reach_(input.reach),
          devices_(input.reach.devices),
          fallback_(input.reach.devices - 1) {
        out_.nodes.resize(graph_.nodes().size());
        out_.values.resize(graph_.values().size());
        open_ = out_.nodes.size();
        constrained_ = values_.changes_in_place;
    }

    Result<Placement> run() {
        TENON_TRY(take_pins());
        start_from_memory();
        spread<true>(true), spread<false>(true), spread<true>(false), spread<false>(false);
        TENON_TRY(settle_nodes());
        settle_values();
        return std::move(out_);
    }

private:
    bool supports(uint32_t device, NodeId node) const { return in_.support.at(device, node).any(); }
    ValueId base(ValueId id) const { return values_.base[id]; }
    bool is_open(NodeId node) const { return out_.nodes[node].device == k_no_value; }
    void assign(NodeId node, uint32_t device, Reason reason) {
        open_ -= is_open(node);
        out_.nodes[node] = {device, reason};
        for (ValueId id : graph_.nodes()[node].outputs) out_.values[id] = {device, reason};
    }

    Status take_pins() {
        for (NodeId node = 0; node < in_.pinned.size(); ++node) {
            const uint32_t device = in_.pinned[node];
            if (device == k_no_value) continue;
            if (!supports(device, node))
                return Status::unsupported(fmt::format("node '{}' is pinned to {}, which doesn't support it: {}",
                                                       graph_.nodes()[node].name, in_.name(device),
                                                       in_.reason(device, node)));
            assign(node, device, Reason::usr);
        }
        return {};
    }

    /// The first device that can use the memory in which a bound value lies and runs the node.
    uint32_t at_memory(NodeId node, ValueId base) const {
        for (uint32_t device = 0; device < devices_; ++device)
            if (reach_.reaches(device, reach_.bound[base]) && supports(device, node)) return device;
        return k_no_value;
    }

    /// Step 1: what already lies somewhere decides.
    void start_from_memory() {
        for (ValueId id = 0; id < out_.values.size(); ++id) {
            if (reach_.is_bound(id)) {
                out_.values[id] = {reach_.first[reach_.bound[id]], Reason::dst};
                constrained_ = constrained_ || (values_.flags[id] & TN_VALUE_STATE);
            }
            if (values_.flags[id] & TN_VALUE_INPUT) out_.values[id] = {fallback_, Reason::inp};
        }
        for (NodeId id = 0; id < out_.nodes.size(); ++id) {
            if (!is_open(id)) continue;
            const Node &node = graph_.nodes()[id];
            if (place_at_output(id, node)) continue;
            for (ValueId input : node.inputs) {
                if (input == k_no_value) continue;
                const ValueId at = base(input);
                if (!(values_.flags[at] & TN_VALUE_WEIGHT) || !reach_.is_bound(at)) continue;
                place_at_weight(id, at);
                break;
            }
        }
    }

    /// A node that changes a bound value in place: its output is a view of what lies there.
    bool place_at_output(NodeId id, const Node &node) {
        for (ValueId output : node.outputs) {
            const ValueId at = base(output);
            if (at == output || !reach_.is_bound(at)) continue;
            const uint32_t device = at_memory(id, at);
            if (device != k_no_value && can_touch(device, id)) assign(id, device, Reason::vsrc_bound);
            return true;
        }
        return false;
    }

    void place_at_weight(NodeId id, ValueId weight) {
        uint32_t device = at_memory(id, weight);
        Reason reason = Reason::wgt;
        if (device == fallback_) {
            for (uint32_t higher = 0; higher < fallback_; ++higher) {
                if (!supports(higher, id) || !in_.support.at(higher, id).offload()) continue;
                device = higher, reason = Reason::off;
                break;
            }
        }
        if (device != k_no_value && can_touch(device, id)) assign(id, device, reason);
    }

    /// Step 2: one sweep. Without the fallback, a node that lies there ends the spread.
    template <bool down>
    void spread(bool stop_at_fallback) {
        if (open_ == 0) return;
        uint32_t current = k_no_value;
        const auto count = NodeId(out_.nodes.size());
        for (NodeId i = 0; i < count; ++i) {
            const NodeId node = down ? i : count - 1 - i;
            const uint32_t there = out_.nodes[node].device;
            if (there != k_no_value)
                current = stop_at_fallback && there == fallback_ ? k_no_value : there;
            else if (current != k_no_value && supports(current, node) && can_touch(current, node))
                assign(node, current, Reason::sup);
        }
    }

    /// Part of "supports": a state is never carried between devices, and what a node changes in place must lie within its
    /// reach.
    bool can_touch(uint32_t device, NodeId id) const {
        if (!constrained_) return true;
        const Node &node = graph_.nodes()[id];
        for (ValueId v : node.inputs) {
            if (v == k_no_value) continue;
            const ValueId at = base(v);
            if (reach_.is_bound(at) && (values_.flags[at] & TN_VALUE_STATE) &&
                !reach_.reaches(device, reach_.bound[at]))
                return false;
        }
        for (ValueId v : node.outputs) {
            const ValueId at = base(v);
            const bool nowhere = out_.values[at].device == k_no_value && !reach_.is_bound(at);
            if (at != v && !nowhere && !in_reach(device, at)) return false;
        }
        return true;
    }

    /// Whether the device can use the value where it lies. What is open lies nowhere.
    bool in_reach(uint32_t device, ValueId at) const {
        if (reach_.is_bound(at)) return reach_.reaches(device, reach_.bound[at]);
        const uint32_t owner = out_.values[at].device;
        return owner != k_no_value && reach_.reaches(device, owner);
    }

    /// Step 3: open nodes go where most of their inputs are; others move up where nothing has to be copied for it.
    Status settle_nodes() {
        const bool may_move = !std::ranges::equal(reach_.same, std::views::iota(0u, devices_));
        for (NodeId id = 0; id < out_.nodes.size(); ++id) {
            const bool pinned = out_.nodes[id].reason == Reason::usr;
            if (is_open(id) || (!pinned && !can_touch(out_.nodes[id].device, id))) {
                TENON_TRY(choose_best(id));
            } else if (may_move && !pinned) {
                move_up(id);
            }
        }
        return {};
    }

    Status choose_best(NodeId id) {
        const Node &node = graph_.nodes()[id];
        uint32_t best = k_no_value;
        int64_t most = -1;
        for (uint32_t device = 0; device < devices_; ++device) {
            if (!supports(device, id) || !can_touch(device, id)) continue;
            int64_t near = 0;
            for (ValueId v : node.inputs) near += v != k_no_value && in_reach(device, base(v));
            if (near > most) best = device, most = near;
        }
        if (best == k_no_value) return refuse(id);
        assign(id, best, Reason::best);
        return {};
    }

    void move_up(NodeId id) {
        const uint32_t now = out_.nodes[id].device;
        for (uint32_t higher = 0; higher < now; ++higher) {
            if (reach_.same[higher] != reach_.same[now] || !supports(higher, id) || !can_touch(higher, id)) continue;
            const auto &inputs = graph_.nodes()[id].inputs;
            if (!std::ranges::all_of(inputs, [&](ValueId v) { return v == k_no_value || in_reach(higher, base(v)); }))
                continue;
            assign(id, higher, Reason::upg);
            return;
        }
    }

    Status refuse(NodeId id) const {
        const Node &node = graph_.nodes()[id];
        std::string types;
        for (ValueId v : node.inputs)
            if (v != k_no_value)
                types += fmt::format("{}{}", types.empty() ? "" : ", ", dtype_info(graph_.values()[v].type).name);
        std::string text = fmt::format("no device supports node '{}': {}({})", node.name, graph_.op(node).name, types);
        for (uint32_t device = 0; device < devices_; ++device)
            text += fmt::format("; {}: {}", in_.name(device),
                                supports(device, id) ? "it can't reach what the node changes, or a state that it reads"
                                                     : in_.reason(device, id));
        return Status::unsupported(std::move(text));
    }

    /// Step 4: views go with their source, what is still open with whoever reads it first.
    void settle_values() {
        const bool open_leaves =
            std::ranges::any_of(graph_.leaves(), [&](ValueId leaf) { return out_.values[leaf].device == k_no_value; });
        for (NodeId id = 0; open_leaves && id < out_.nodes.size(); ++id)
            for (ValueId v : graph_.nodes()[id].inputs)
                if (v != k_no_value && out_.values[base(v)].device == k_no_value)
                    out_.values[base(v)] = {out_.nodes[id].device, Reason::cur};
        for (ValueId id = 0; id < out_.values.size(); ++id) {
            if (values_.is_base(id) || out_.values[id].device != k_no_value) continue;
            const Reason reason = reach_.is_bound(base(id)) ? Reason::vsrc_bound : Reason::vsrc;
            out_.values[id] = {out_.values[base(id)].device, reason};
        }
    }

    const PlaceInput &in_;
    const Graph &graph_;
    const ValueTable &values_;
    const MemoryReach &reach_;
    const uint32_t devices_, fallback_;
    size_t open_;       // nodes without a device
    bool constrained_;  // some node can't go wherever it is supported
    Placement out_;
};

}  // namespace

Result<Placement> place(const PlaceInput &input) {
    return Placer(input).run();
}

}  // namespace tenon
