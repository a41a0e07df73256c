#include "sched/order.h"

#include <algorithm>

namespace tenon {

uint32_t Order::first_after(uint32_t device, uint32_t reader, const Split &split) const {
    const uint32_t other = split.segments[reader].device;
    const auto segments = lane(device);
    const auto found = std::ranges::partition_point(
        segments, [&](uint32_t segment) { return ended(segment, other) <= position(reader); });
    return found == segments.end() ? k_no_value : *found;
}

class Orderer {
public:
    Orderer(const PlaceInput &input, const Placement &placement, Split &split)
        : in_(input), graph_(input.graph), placement_(placement), split_(split) {
        out_.devices_ = in_.reach.devices;
    }

    Order run() {
        sort_into_lanes();
        if (out_.devices_ == 1) return std::move(out_);
        uses_.resize(graph_.values().size());
        if (in_.values.changes_in_place)
            for (const Node &node : graph_.nodes())
                for (ValueId output : node.outputs)
                    if (!in_.values.is_base(output)) uses_[in_.values.base[output]].is_changed = true;
        out_.ended_.resize(split_.segments.size() * out_.devices_);
        for (uint32_t s = 0; s < split_.segments.size(); ++s) {
            find_edges(s);
            settle(s);
        }
        return std::move(out_);
    }

private:
    /// What has been done to a base value so far.
    struct Use {
        uint32_t writer = k_no_value;   // the last segment that wrote it
        uint32_t readers = k_no_value;  // list of segments that have read it since; kept where it will be changed
        bool is_changed = false;
        uint32_t device = k_no_value;  // of states: who used it
        uint32_t last_foreign = k_no_value;
    };
    struct Reader {
        uint32_t segment, next;
    };

    void sort_into_lanes() {
        const auto count = uint32_t(split_.segments.size());
        out_.first_.assign(out_.devices_ + 1, 0);
        out_.position_.resize(count);
        for (uint32_t s = 0; s < count; ++s) out_.position_[s] = out_.first_[split_.segments[s].device + 1]++;
        for (uint32_t d = 0; d < out_.devices_; ++d) out_.first_[d + 1] += out_.first_[d];
        out_.lanes_.resize(count);
        for (uint32_t s = 0; s < count; ++s)
            out_.lanes_[out_.first_[split_.segments[s].device] + out_.position_[s]] = s;
    }

    uint32_t device_of(uint32_t segment) const { return split_.segments[segment].device; }

    void wait_for(uint32_t s, uint32_t other) {
        if (other != k_no_value && device_of(other) != device_of(s)) edges_.push_back(other);
    }

    /// Memory of another device that this segment touches must be kept until it has ended.
    void note_foreign(uint32_t s, ValueId base) {
        Use &use = uses_[base];
        if (in_.reach.is_bound(base)) {
            if (!(in_.values.flags[base] & TN_VALUE_STATE)) return;
            if (use.device == k_no_value)
                out_.state_uses_.push_back({base, device_of(s)});
            else if (use.device != device_of(s))
                out_.shares_states_ = true;
            use.device = device_of(s);
        } else if (placement_.values[base].device != device_of(s) && use.last_foreign != s) {
            use.last_foreign = s;
            out_.foreign_uses_.push_back({base, s});
        }
    }

    void read(uint32_t s, ValueId base) {
        Use &use = uses_[base];
        wait_for(s, use.writer);
        note_foreign(s, base);
        if (!use.is_changed) return;
        if (use.readers != k_no_value && readers_[use.readers].segment == s) return;
        readers_.push_back({s, use.readers});
        use.readers = uint32_t(readers_.size() - 1);
    }

    void change(uint32_t s, ValueId base) {
        Use &use = uses_[base];
        wait_for(s, use.writer);
        for (uint32_t at = use.readers; at != k_no_value; at = readers_[at].next) wait_for(s, readers_[at].segment);
        note_foreign(s, base);
        use.readers = k_no_value;
        use.writer = s;
    }

    void find_edges(uint32_t s) {
        const Segment &segment = split_.segments[s];
        for (uint32_t copy : segment.copies()) read(s, split_.copies[copy].value);
        for (NodeId id : segment.nodes()) {
            const Node &node = graph_.nodes()[id];
            for (ValueId input : node.inputs) {
                if (input == k_no_value) continue;
                const ValueId base = in_.values.base[input];
                if (in_.reach.reaches(segment.device, split_.type_of[base])) read(s, base);  // else a copy was read
            }
            for (ValueId output : node.outputs) {
                const ValueId base = in_.values.base[output];
                if (base == output)
                    uses_[base].writer = s;
                else
                    change(s, base);
            }
        }
    }

    uint32_t *ended(uint32_t segment) { return &out_.ended_[size_t(segment) * out_.devices_]; }

    /// Turns the edges into waits, the latest first: most of the others follow from them.
    void settle(uint32_t s) {
        Segment &segment = split_.segments[s];
        const uint32_t position = out_.position_[s];
        uint32_t *known = ended(s);
        if (position > 0) {
            const uint32_t before = out_.lane(segment.device)[position - 1];
            std::copy_n(ended(before), out_.devices_, known);
            known[segment.device] = position;
        }
        std::ranges::sort(edges_, std::greater());
        segment.first_wait = uint32_t(split_.waits.size());
        for (uint32_t other : edges_) {
            const uint32_t device = device_of(other), needed = out_.position_[other] + 1;
            if (known[device] >= needed) continue;
            split_.waits.push_back(other);
            const uint32_t *theirs = ended(other);
            for (uint32_t d = 0; d < out_.devices_; ++d) known[d] = std::max(known[d], theirs[d]);
            known[device] = std::max(known[device], needed);
        }
        segment.end_wait = uint32_t(split_.waits.size());
        edges_.clear();
    }

    const PlaceInput &in_;
    const Graph &graph_;
    const Placement &placement_;
    Split &split_;
    Order out_;
    LargeVector<Use> uses_;  // per value
    LargeVector<Reader> readers_;
    std::vector<uint32_t> edges_;  // of the segment at hand
};

Order order_segments(const PlaceInput &input, const Placement &placement, Split &split) {
    return Orderer(input, placement, split).run();
}

}  // namespace tenon
