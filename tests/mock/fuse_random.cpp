// Groups at random. Any order of the nodes that keeps what touches the same bytes in order may be cut anywhere: so
// groups come about that run late (a node waits for what is fused behind it) and early (it runs long before its readers).
#include "fusing.h"

namespace mock {
namespace {

class RandomFuser {
public:
    RandomFuser(const GraphView &graph, uint64_t alignment, uint64_t seed)
        : graph_(graph), uses_(graph), alignment_(alignment), random_(mix(seed) ^ digest(graph)) {}

    Fusion run() {
        fusion_.unstored_at.assign(graph_.values().size(), Memory::kStored);
        if (random_.chance(25))
            keep_order();
        else
            shuffle_order();
        cut();
        find_last_readers();
        for (uint32_t g = 0; g < fusion_.groups.size(); ++g) {
            leave_unstored(g);
            offer_in_place(g);
            if (random_.chance(50)) fusion_.groups[g].spare_bytes = random_.below(4096);
        }
        return std::move(fusion_);
    }

private:
    /// Of the graph's structure: equal graphs are fused equally, different ones of a device differently.
    static uint64_t digest(const GraphView &graph) {
        uint64_t all = graph.values().size();
        for (const NodeView &node : graph.nodes()) {
            all = mix(all + kMixStep + node.op);
            for (const auto &list : {node.inputs, node.outputs}) {
                for (uint32_t v : list) all = mix(all + kMixStep + v);
            }
        }
        return all;
    }

    // ---- Order ----

    void keep_order() {
        for (const NodeView &node : graph_.nodes()) fusion_.order.push_back(node.index);
    }

    /// emit(earlier, later) for nodes that touch the same bytes, one of them writing.
    template <class Emit>
    void visit_conflicts(Emit &&emit) const {
        struct Reader {
            uint32_t node, next;
        };
        std::vector<uint32_t> writer(graph_.values().size(), TN_NONE), reading(graph_.values().size(), TN_NONE);
        std::vector<Reader> readers;  // lists, one for each base: who read it since it was last written
        for (const NodeView &node : graph_.nodes()) {
            for (uint32_t v : node.inputs) {
                if (v == TN_NONE) continue;
                const uint32_t base = graph_.base(v);
                if (writer[base] != TN_NONE) emit(writer[base], node.index);
                readers.push_back({node.index, reading[base]});
                reading[base] = static_cast<uint32_t>(readers.size() - 1);
            }
            for (uint32_t v : node.outputs) {
                const uint32_t base = graph_.base(v);
                for (uint32_t i = reading[base]; i != TN_NONE; i = readers[i].next) {
                    if (readers[i].node != node.index) emit(readers[i].node, node.index);
                }
                if (writer[base] != TN_NONE && writer[base] != node.index) emit(writer[base], node.index);
                writer[base] = node.index, reading[base] = TN_NONE;
            }
        }
    }

    /// Takes any node whose predecessors have run; half of the time one that the last one set free, so that groups hold
    /// chains as well as strangers.
    void shuffle_order() {
        const size_t count = graph_.nodes().size();
        const Lists later(count, [&](auto &&emit) { visit_conflicts(emit); });
        std::vector<uint32_t> waits_for(count, 0), ready;
        visit_conflicts([&](uint32_t, uint32_t node) { ++waits_for[node]; });
        for (uint32_t n = 0; n < count; ++n) {
            if (waits_for[n] == 0) ready.push_back(n);
        }
        while (!ready.empty()) {
            if (random_.chance(50)) std::swap(ready[random_.below(ready.size())], ready.back());
            const uint32_t node = ready.back();
            ready.pop_back();
            fusion_.order.push_back(node);
            for (uint32_t next : later.of(node)) {
                if (--waits_for[next] == 0) ready.push_back(next);
            }
        }
    }

    void cut() {
        const uint64_t mean = 1 + random_.below(8);  // nodes of a group
        for (uint32_t i = 0; i < fusion_.order.size(); ++i) {
            if (i == 0 || random_.below(mean) == 0) fusion_.groups.push_back({i, i});
            fusion_.groups.back().end = i + 1;
        }
    }

    // ---- Values ----

    void find_last_readers() {
        place_of_.resize(fusion_.order.size());
        for (uint32_t i = 0; i < fusion_.order.size(); ++i) place_of_[fusion_.order[i]] = i;
        last_read_.assign(graph_.values().size(), TN_NONE);
        for (const ValueView &v : graph_.values()) {
            for (uint32_t n : uses_.readers(v.index)) {
                uint32_t &last = last_read_[v.index];
                last = last == TN_NONE ? place_of_[n] : std::max(last, place_of_[n]);
            }
        }
    }

    void leave_unstored(uint32_t g) {
        Fusion::Group &group = fusion_.groups[g];
        for (uint32_t n : fusion_.nodes(group)) {
            for (uint32_t v : graph_.node(n).outputs) {
                const ValueView &value = graph_.value(v);
                const bool leaves = last_read_[v] != TN_NONE && last_read_[v] >= group.end;
                if (!uses_.is_private(value) || leaves || random_.chance(25)) continue;
                fusion_.unstored_at[v] = group.unstored_bytes;
                group.unstored_bytes += round_up(value.bytes(), alignment_);
            }
        }
    }

    /// Whether `node`, of this group, may write out where in lies: in dies here, and all of it has been read by then.
    bool dies_before(const ValueView &in, const NodeView &node, const ValueView &out,
                     const Fusion::Group &group) const {
        if ((in.flags & ~TN_VALUE_INPUT) != 0 || in.view_of != TN_NONE || uses_.is_viewed(in.index)) return false;
        if (in.index == out.index || fusion_.unstored_at[in.index] != Memory::kStored) return false;
        if (in.is_broadcast() || out.extent() > in.extent()) return false;
        const uint32_t last = last_read_[in.index], now = place_of_[node.index];
        if (last < group.begin || last > now) return false;
        return last < now || may_overwrite(node, in, out);
    }

    void offer_in_place(uint32_t g) {
        const Fusion::Group &group = fusion_.groups[g];
        std::vector<uint32_t> inputs;  // of the nodes so far
        for (uint32_t n : fusion_.nodes(group)) {
            const NodeView &node = graph_.node(n);
            for (uint32_t v : node.inputs) {
                if (v != TN_NONE) inputs.push_back(v);
            }
            for (uint32_t v : node.outputs) {
                const ValueView &out = graph_.value(v);
                if (out.view_of != TN_NONE || fusion_.unstored_at[v] != Memory::kStored) continue;
                for (size_t tries = std::min<size_t>(inputs.size(), 8); tries > 0; --tries) {
                    const uint32_t in = inputs[random_.below(inputs.size())];
                    if (!dies_before(graph_.value(in), node, out, group)) continue;
                    fusion_.in_place.push_back({v, in});
                    break;
                }
            }
        }
    }

    const GraphView &graph_;
    const Uses uses_;
    const uint64_t alignment_;
    Random random_;
    Fusion fusion_;
    std::vector<uint32_t> place_of_;   // of each node, in order
    std::vector<uint32_t> last_read_;  // of each value: the place of its last reader, TN_NONE without one
};

}  // namespace

Fusion fuse_randomly(const GraphView &graph, uint64_t alignment, uint64_t seed) {
    return RandomFuser(graph, alignment, seed).run();
}

}  // namespace mock
