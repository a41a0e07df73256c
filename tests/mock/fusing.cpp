// Groups by pattern: a late one (add runs what came before it as well) and an early one (rms_norm runs the products
// that read it).
#include "fusing.h"

namespace mock {

Uses::Uses(const GraphView &graph)
    : readers_(graph.values().size(),
               [&](auto &&emit) {
                   for (const NodeView &node : graph.nodes()) {
                       for (uint32_t v : node.inputs) {
                           if (v != TN_NONE) emit(v, node.index);
                       }
                   }
               }),
      writers_(graph.values().size(),
               [&](auto &&emit) {
                   for (const NodeView &node : graph.nodes()) {
                       for (uint32_t v : node.outputs) emit(graph.base(v), node.index);
                   }
               }),
      viewed_(graph.values().size(), false) {
    for (const ValueView &v : graph.values()) {
        if (v.view_of != TN_NONE) viewed_[v.view_of] = true;
    }
}

bool may_overwrite(const NodeView &node, const ValueView &in, const ValueView &out) {
    const OpInfo *op = find_op(node.op);
    if (op == nullptr || op->alias != OpAlias::kMay0) return false;
    // never a broadcast operand: its bytes are read more often than once
    if (in.type != out.type || !in.same_shape(out) || !in.is_contiguous() || in.is_broadcast()) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool elementwise = i == 0 || node.op == TN_OP_ADD || node.op == TN_OP_MUL;
        if (node.inputs[i] == in.index && !elementwise) return false;
    }
    return true;
}

Fusion fuse_nothing(const GraphView &graph) {
    Fusion fusion;
    fusion.unstored_at.assign(graph.values().size(), Memory::kStored);
    for (const NodeView &node : graph.nodes()) {
        fusion.order.push_back(node.index);
        fusion.groups.push_back({node.index, node.index + 1});
    }
    return fusion;
}

namespace {

class PatternFuser {
public:
    PatternFuser(const GraphView &graph, uint64_t alignment)
        : graph_(graph), uses_(graph), alignment_(alignment), taken_(graph.nodes().size(), false) {}

    Fusion run() {
        fuse_norms();
        fuse_adds();
        for (const NodeView &node : graph_.nodes()) {
            if (!taken_[node.index]) fused_.push_back({{node.index}, TN_NONE, node.index});
        }
        std::ranges::sort(fused_, {}, &Fused::position);
        Fusion fusion;
        fusion.unstored_at.assign(graph_.values().size(), Memory::kStored);
        for (const Fused &group : fused_) {
            const auto begin = static_cast<uint32_t>(fusion.order.size());
            fusion.order.insert(fusion.order.end(), group.nodes.begin(), group.nodes.end());
            fusion.groups.push_back({begin, static_cast<uint32_t>(fusion.order.size())});
            if (group.unstored != TN_NONE) {
                fusion.unstored_at[group.unstored] = 0;
                fusion.groups.back().unstored_bytes = round_up(graph_.value(group.unstored).bytes(), alignment_);
            }
            offer_in_place(group, fusion);
        }
        return fusion;
    }

private:
    struct Fused {
        std::vector<uint32_t> nodes;  // in running order
        uint32_t unstored = TN_NONE;
        uint32_t position = 0;  // the node in whose place the group runs
    };

    /// Whether a node after `node` and before `end` changes bytes that it reads (a KV cache): then it can't run later.
    bool overwritten_between(const NodeView &node, uint32_t end) const {
        return std::ranges::any_of(node.inputs, [&](uint32_t in) {
            if (in == TN_NONE) return false;
            const auto writers = uses_.writers(graph_.base(in));
            const auto next = std::ranges::upper_bound(writers, node.index);
            return next != writers.end() && *next < end;
        });
    }

    void fuse_adds() {
        for (const NodeView &first : graph_.nodes()) {
            if (taken_[first.index] || (first.op != TN_OP_MUL && first.op != TN_OP_LINEAR)) continue;
            const uint32_t middle = first.outputs[0];
            const auto by = uses_.readers(middle);
            if (by.size() != 1 || !uses_.is_private(graph_.value(middle))) continue;
            const NodeView &add = graph_.node(by[0]);
            if (add.op != TN_OP_ADD || taken_[add.index] || overwritten_between(first, add.index)) continue;
            taken_[first.index] = taken_[add.index] = true;
            fused_.push_back({{first.index, add.index}, middle, add.index});
        }
    }

    void fuse_norms() {
        for (const NodeView &norm : graph_.nodes()) {
            if (norm.op != TN_OP_RMS_NORM || taken_[norm.index]) continue;
            const uint32_t middle = norm.outputs[0];
            const auto by = uses_.readers(middle);
            if (by.empty() || !uses_.is_private(graph_.value(middle))) continue;
            const bool all_linear = std::ranges::all_of(by, [&](uint32_t n) {
                const NodeView &reader = graph_.node(n);
                // early: its weights must be there already, so they are nobody's output
                return reader.op == TN_OP_LINEAR && reader.inputs[0] == middle && reader.inputs[1] != middle &&
                       !taken_[n] && graph_.value(graph_.base(reader.inputs[1])).has(TN_VALUE_WEIGHT) &&
                       uses_.is_private(reader.output());
            });
            if (!all_linear) continue;
            Fused group{{norm.index}, middle, norm.index};
            group.nodes.insert(group.nodes.end(), by.begin(), by.end());
            for (uint32_t n : group.nodes) taken_[n] = true;
            fused_.push_back(std::move(group));
        }
    }

    /// The group's last node may write where one of its operands lies, if that operand is read element by element just
    /// before.
    void offer_in_place(const Fused &group, Fusion &fusion) const {
        const NodeView &node = graph_.node(group.nodes.back());
        const ValueView &out = node.output();
        if (!uses_.is_private(out) && out.view_of != TN_NONE) return;
        for (uint32_t v : node.inputs) {
            if (v == TN_NONE || v == group.unstored || !uses_.is_private(graph_.value(v)) ||
                !may_overwrite(node, graph_.value(v), out))
                continue;
            fusion.in_place.push_back({out.index, v});
            return;
        }
    }

    const GraphView &graph_;
    const Uses uses_;
    const uint64_t alignment_;
    std::vector<bool> taken_;
    std::vector<Fused> fused_;
};

}  // namespace

Fusion fuse_patterns(const GraphView &graph, uint64_t alignment) {
    return PatternFuser(graph, alignment).run();
}

}  // namespace mock
