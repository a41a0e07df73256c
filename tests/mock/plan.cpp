// The mock's plans. Without fusing: one group a node. With it: two patterns that put the host's memory planner to the
// test: a late group (add runs what came before it as well) and an early one (rms_norm runs the products that read it).
#include "device.h"

namespace mock {
namespace {

constexpr uint64_t kAlignment = 256;  // of the buffer type, so of scratch
uint64_t round_up(uint64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

MockPlan::MockPlan(MockDevice &device, std::shared_ptr<const GraphView> graph, bool fuse)
    : Plan(device, std::move(graph)), mock_(device) {
    const auto nodes = this->graph().nodes();
    std::vector<bool> taken(nodes.size(), false);
    if (fuse) {
        fuse_norms(taken);
        fuse_adds(taken);
    }
    for (const NodeView &node : nodes) {
        if (!taken[node.index]) fused_.push_back({{node.index}, TN_NONE, 0, node.index});
    }
    std::sort(fused_.begin(), fused_.end(), [](const Fused &a, const Fused &b) { return a.position < b.position; });
    node_groups.resize(nodes.size());
    for (const Fused &group : fused_) {
        uint64_t scratch = 0;
        for (uint32_t n : group.nodes) {
            node_groups[n] = static_cast<uint32_t>(groups.size());
            scratch = std::max(scratch, find_kernel(nodes[n].op)->scratch(nodes[n]));
        }
        groups.push_back({group.unstored_bytes + scratch});
        if (group.unstored != TN_NONE) unstored.push_back(group.unstored);
        if (fuse) offer_in_place(group);
    }
}

std::vector<uint32_t> MockPlan::readers(uint32_t value) const {
    std::vector<uint32_t> found;
    for (const NodeView &node : graph().nodes()) {
        for (uint32_t v : node.inputs) {
            if (v == value) found.push_back(node.index);
        }
    }
    return found;
}

/// Nobody outside this graph's nodes can see it, and it shares bytes with nothing.
bool MockPlan::is_private(uint32_t value) const {
    const ValueView &v = graph().value(value);
    if (v.flags != 0 || v.view_of != TN_NONE) return false;
    return std::ranges::none_of(graph().values(), [&](const ValueView &other) { return other.view_of == value; });
}

/// Whether a node after `node` and before `end` changes bytes that it reads (a KV cache): then it can't run later.
bool MockPlan::overwritten_between(const NodeView &node, uint32_t end) const {
    for (uint32_t i = node.index + 1; i < end; ++i) {
        for (uint32_t out : graph().node(i).outputs) {
            for (uint32_t in : node.inputs) {
                if (in != TN_NONE && graph().base(in) == graph().base(out)) return true;
            }
        }
    }
    return false;
}

void MockPlan::fuse_adds(std::vector<bool> &taken) {
    for (const NodeView &first : graph().nodes()) {
        if (taken[first.index] || (first.op != TN_OP_MUL && first.op != TN_OP_LINEAR)) continue;
        const uint32_t middle = first.outputs[0];
        const std::vector<uint32_t> by = readers(middle);
        if (by.size() != 1 || !is_private(middle)) continue;
        const NodeView &add = graph().node(by[0]);
        if (add.op != TN_OP_ADD || taken[add.index] || overwritten_between(first, add.index)) continue;
        taken[first.index] = taken[add.index] = true;
        fused_.push_back({{first.index, add.index}, middle, round_up(graph().value(middle).bytes()), add.index});
    }
}

void MockPlan::fuse_norms(std::vector<bool> &taken) {
    for (const NodeView &norm : graph().nodes()) {
        if (norm.op != TN_OP_RMS_NORM || taken[norm.index]) continue;
        const uint32_t middle = norm.outputs[0];
        const std::vector<uint32_t> by = readers(middle);
        if (by.empty() || !is_private(middle)) continue;
        const bool all_linear = std::ranges::all_of(by, [&](uint32_t n) {
            const NodeView &reader = graph().node(n);
            // early: its weights must be there already, so they are nobody's output
            return reader.op == TN_OP_LINEAR && reader.inputs[0] == middle && reader.inputs[1] != middle && !taken[n] &&
                   graph().value(graph().base(reader.inputs[1])).has(TN_VALUE_WEIGHT) && is_private(reader.outputs[0]);
        });
        if (!all_linear) continue;
        Fused group{{norm.index}, middle, round_up(graph().value(middle).bytes()), norm.index};
        for (uint32_t n : by) group.nodes.push_back(n);
        for (uint32_t n : group.nodes) taken[n] = true;
        fused_.push_back(std::move(group));
    }
}

/// The group's last node may write where one of its operands lies, if that operand is read element by element just
/// before.
void MockPlan::offer_in_place(const Fused &group) {
    const NodeView &node = graph().node(group.nodes.back());
    const OpInfo *op = find_op(node.op);
    if (op == nullptr || op->alias != OpAlias::kMay0) return;
    const ValueView &out = node.output();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        const bool elementwise = i == 0 || node.op == TN_OP_ADD || node.op == TN_OP_MUL;
        if (!elementwise || !node.has_input(i) || node.inputs[i] == group.unstored) continue;
        const ValueView &in = node.input(i);
        // never a broadcast operand: its bytes are read more often than once
        if (in.type != out.type || !in.same_shape(out) || !in.is_contiguous() || in.is_broadcast() ||
            !is_private(in.index))
            continue;
        if (!is_private(out.index) && out.view_of != TN_NONE) continue;
        in_place.push_back({out.index, in.index});
        return;
    }
}

void MockPlan::execute(const RunView &run) {
    if (Faults::hit(mock_.faults.lost)) fail(TN_DEVICE_LOST, "the device was lost on demand");
    if (Faults::hit(mock_.faults.fail_run)) fail(TN_INTERNAL, "the run failed on demand");
    Plan::execute(run);
}

void MockPlan::run_group(uint32_t group, const RunView &run) {
    const Fused &fused = fused_[group];
    mock_.faults.pause();
    auto *scratch = run.scratch<std::byte>(group);
    const Memory memory{&run, fused.unstored, scratch};
    for (uint32_t n : fused.nodes) {
        const NodeView &node = graph().node(n);
        find_kernel(node.op)->run(node, memory, scratch + fused.unstored_bytes);
    }
}

bool MockPlan::update(const GraphView &next) {
    for (const NodeView &node : next.nodes()) {  // binds and scratch stay, so scratch must not grow
        const Kernel *kernel = find_kernel(node.op);
        if (kernel->scratch(node) != kernel->scratch(graph().node(node.index))) return false;
    }
    return true;
}

}  // namespace mock
