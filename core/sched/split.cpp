#include "sched/split.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {
namespace {

class Splitter {
public:
    Splitter(const PlaceInput &input, const Placement &placement, std::span<const NodeId> observed)
        : in_(input), graph_(input.graph), placement_(placement), observed_(observed) {
        const size_t values = graph_.values().size();
        out_.type_of.resize(values);
        for (ValueId id = 0; id < values; ++id)
            out_.type_of[id] = in_.reach.is_bound(id) ? in_.reach.bound[id] : placement_.values[id].device;
        all_in_reach_ = std::ranges::all_of(in_.reach.usable, [](uint8_t usable) { return usable; });
        if (!all_in_reach_) copy_of_.assign(values, k_no_value);
    }

    Result<Split> run() {
        auto next_observed = observed_.begin();
        bool cut = true;
        for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
            const uint32_t device = placement_.nodes[id].device;
            if (cut || out_.segments.back().device != device || (!all_in_reach_ && wants_new_segment(id, device)))
                begin(id, device);
            if (!all_in_reach_) TENON_TRY(reach_operands(id, device));
            out_.segments.back().end_node = id + 1;
            cut = next_observed != observed_.end() && *next_observed == id;
            if (cut) ++next_observed;
        }
        out_.first_stand_in.push_back(uint32_t(out_.stand_ins.size()));
        return std::move(out_);
    }

private:
    void begin(NodeId node, uint32_t device) {
        const auto copies = uint32_t(out_.copies.size());
        out_.segments.push_back({device, node, node, copies, copies, 0, 0});
        out_.first_stand_in.push_back(uint32_t(out_.stand_ins.size()));
    }

    ValueId base(ValueId id) const { return in_.values.base[id]; }
    bool in_reach(uint32_t device, ValueId at) const { return in_.reach.reaches(device, out_.type_of[at]); }

    /// A weight that must be carried over begins a segment of its own, so that staged weights can share memory.
    bool wants_new_segment(NodeId id, uint32_t device) const {
        const Segment &segment = out_.segments.back();
        if (segment.first_copy == segment.end_copy) return false;
        for (ValueId input : graph_.nodes()[id].inputs) {
            if (input == k_no_value) continue;
            const ValueId at = base(input);
            if ((in_.values.flags[at] & TN_VALUE_WEIGHT) && !in_reach(device, at) &&
                find_copy(at, device) == k_no_value)
                return true;
        }
        return false;
    }

    Status reach_operands(NodeId id, uint32_t device) {
        const Node &node = graph_.nodes()[id];
        for (ValueId output : node.outputs) {
            const ValueId at = base(output);
            if (at != output && !in_reach(device, at))
                return Status::unsupported(
                    fmt::format("node '{}' on {} would change '{}' in place, which lies out of its reach", node.name,
                                in_.name(device), graph_.values()[at].name));
        }
        for (ValueId input : node.inputs)
            if (input != k_no_value && !in_reach(device, base(input))) TENON_TRY(carry(node, device, base(input)));
        for (ValueId output : node.outputs)
            if (base(output) != output) copy_of_[base(output)] = k_no_value;  // what was copied is another version
        return {};
    }

    /// The copy of a base's present version on a device. As long as a list is long, each device has one entry at most.
    uint32_t find_copy(ValueId at, uint32_t device) const {
        uint32_t copy = copy_of_[at];
        while (copy != k_no_value && out_.copies[copy].to != device) copy = links_[copy].next;
        return copy;
    }

    Status carry(const Node &node, uint32_t device, ValueId at) {
        const Value &value = graph_.values()[at];
        if (value.flags & TN_VALUE_STATE)
            return Status::unsupported(
                fmt::format("node '{}' on {} reads the state '{}', which lies out of its reach and is "
                            "never carried between devices",
                            node.name, in_.name(device), value.name));
        const auto segment = uint32_t(out_.segments.size() - 1);
        uint32_t copy = find_copy(at, device);
        if (copy == k_no_value) {
            copy = uint32_t(out_.copies.size());
            const uint64_t bytes = uint64_t(*canonical_bytes(value.type, value.shape.sizes()));
            out_.copies.push_back({at, placement_.values[at].device, device, bytes});
            out_.segments.back().end_copy = copy + 1;
            links_.push_back({copy_of_[at], k_no_value});
            copy_of_[at] = copy;
        }
        if (links_[copy].last_user != segment) {
            links_[copy].last_user = segment;
            out_.stand_ins.push_back(copy);
        }
        return {};
    }

    struct Link {
        uint32_t next;       // another copy of this version, on another device
        uint32_t last_user;  // the last segment that has it among its stand-ins
    };

    const PlaceInput &in_;
    const Graph &graph_;
    const Placement &placement_;
    const std::span<const NodeId> observed_;
    bool all_in_reach_;
    Split out_;
    LargeVector<uint32_t> copy_of_;  // per value: the newest copy of its present version
    LargeVector<Link> links_;        // per copy
};

}  // namespace

Result<Split> split(const PlaceInput &input, const Placement &placement, std::span<const NodeId> observed) {
    return Splitter(input, placement, observed).run();
}

}  // namespace tenon
