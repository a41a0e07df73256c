#include "sched/split.h"

#include <fmt/format.h>

#include <tuple>

namespace tenon {
namespace {

class Splitter {
public:
    Splitter(const PlaceInput &input, const Placement &placement) : in_(input), placement_(placement) {}

    Result<Split> run() {
        for (NodeId id = 0; id < in_.graph.nodes().size(); ++id) {
            const Node &node = in_.graph.nodes()[id];
            const uint32_t device = placement_.nodes[id].device;
            TENON_TRY(check_in_place(node, device));
            if (out_.segments.empty() || out_.segments.back().device != device || wants_new_segment(node, device))
                begin(device);
            for (ValueId input : node.inputs)
                if (input != k_no_value) TENON_TRY(reach(node, device, in_.graph.base(input)));
            out_.segments.back().nodes.push_back(id);
            for (ValueId output : node.outputs) {
                const ValueId base = in_.graph.base(output);
                if (base != output) ++version_[base];
            }
        }
        return std::move(out_);
    }

private:
    void begin(uint32_t device) {
        out_.segments.push_back({device, {}, {}});
        out_.stand_ins.emplace_back();
    }

    bool in_reach(uint32_t device, ValueId base) const {
        if (in_.bound[base]) return in_.reach.of_bound[device][base];
        return in_.reach.of_device[device][placement_.values[base].device];
    }

    /// A weight that must be carried over begins a segment of its own, so that staged weights can share memory.
    bool wants_new_segment(const Node &node, uint32_t device) const {
        if (out_.segments.back().copies.empty()) return false;
        for (ValueId input : node.inputs) {
            if (input == k_no_value) continue;
            const ValueId base = in_.graph.base(input);
            if ((in_.graph.values()[base].flags & TN_VALUE_WEIGHT) && !in_reach(device, base) &&
                !find_copy(base, device))
                return true;
        }
        return false;
    }

    Status check_in_place(const Node &node, uint32_t device) const {
        for (ValueId output : node.outputs) {
            const ValueId base = in_.graph.base(output);
            if (base == output || in_reach(device, base)) continue;
            return Status::unsupported(
                fmt::format("node '{}' on {} would change '{}' in place, which lies out of its reach", node.name,
                            in_.devices[device]->name(), in_.graph.values()[base].name));
        }
        return {};
    }

    const uint32_t *find_copy(ValueId base, uint32_t device) const {
        const auto version = version_.find(base);
        const auto found = made_.find({base, device, version == version_.end() ? 0 : version->second});
        return found == made_.end() ? nullptr : &found->second;
    }

    Status reach(const Node &node, uint32_t device, ValueId base) {
        if (in_reach(device, base)) return {};
        const Value &value = in_.graph.values()[base];
        if (value.flags & TN_VALUE_STATE)
            return Status::unsupported(
                fmt::format("node '{}' on {} reads the state '{}', which lies out of its reach and is "
                            "never carried between devices",
                            node.name, in_.devices[device]->name(), value.name));
        const uint32_t *there = find_copy(base, device);
        if (!there) {
            const uint64_t bytes = uint64_t(*canonical_bytes(value.type, value.shape.sizes()));
            out_.copies.push_back({base, placement_.values[base].device, device, bytes});
            there = &made_.emplace(std::tuple(base, device, version_[base]), uint32_t(out_.copies.size() - 1))
                         .first->second;
            out_.segments.back().copies.push_back(*there);
        }
        out_.stand_ins.back()[base] = *there;
        return {};
    }

    const PlaceInput &in_;
    const Placement &placement_;
    Split out_;
    std::map<ValueId, uint32_t> version_;  // how often a base has been changed in place so far
    std::map<std::tuple<ValueId, uint32_t, uint32_t>, uint32_t> made_;
};

}  // namespace

Result<Split> split(const PlaceInput &input, const Placement &placement) {
    return Splitter(input, placement).run();
}

}  // namespace tenon
