#include "plan.h"

namespace mock {
namespace {

Fusion fuse(const MockDevice &device, const GraphView &graph) {
    switch (device.fuse()) {
        case Fuse::kPatterns: return fuse_patterns(graph, device.alignment());
        case Fuse::kRandom: return fuse_randomly(graph, device.alignment(), device.seed());
        default: return fuse_nothing(graph);
    }
}

/// Byte offset of element i, counted row-major.
int64_t element_at(const ValueView &v, int64_t i) {
    return offset_of(v, i, 0);
}

/// An error that no rounding makes: found by whoever compares, in one element of each output.
void make_wrong(const NodeView &node, const Memory &memory) {
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueView &out = node.output(i);
        if (!is_number(out.type) || out.is_empty()) continue;
        std::byte *at = memory.at(out) + element_at(out, (out.elements() - 1) / 2);
        const double right = load(at, out.type);
        store(at, out.type, right + 1 + (right < 0 ? -right : right) / 8);
    }
}

}  // namespace

MockPlan::MockPlan(MockDevice &device, std::shared_ptr<const GraphView> graph)
    : Plan(device, std::move(graph)), mock_(device), fusion_(fuse(device, this->graph())) {
    for (const NodeView &node : this->graph().nodes()) kernels_.push_back(find_kernel(node.op));
    answer();
    find_wrong_nodes();
    if (device.hazards()) hazards_ = std::make_unique<PlanHazards>(device.names(), *this);
}

void MockPlan::answer() {
    const auto nodes = graph().nodes();
    node_groups.resize(nodes.size());
    for (const Fusion::Group &group : fusion_.groups) {
        uint64_t scratch = 0;
        for (uint32_t n : fusion_.nodes(group)) {
            node_groups[n] = static_cast<uint32_t>(groups.size());
            scratch = std::max(scratch, kernels_[n]->scratch(nodes[n]));
        }
        groups.push_back({group.unstored_bytes + scratch + group.spare_bytes});
    }
    for (uint32_t v = 0; v < fusion_.unstored_at.size(); ++v) {
        if (fusion_.unstored_at[v] != Memory::kStored) unstored.push_back(v);
    }
    in_place = fusion_.in_place;
}

void MockPlan::find_wrong_nodes() {
    wrong_.assign(graph().nodes().size(), false);
    uint64_t number = 0;
    for (const NodeView &node : graph().nodes()) {
        if (node.op == mock_.wrong_op()) wrong_[node.index] = number++ >= mock_.wrong_from();
    }
}

void MockPlan::placed() {
    mock_.faults.check(Call::kPlace);
    if (hazards_ != nullptr) hazards_->placed();
}

std::shared_ptr<void> MockPlan::bound(const BoundSet &) {
    mock_.faults.check(Call::kBind);
    return nullptr;
}

void MockPlan::execute(const RunView &run) {
    mock_.faults.check(Call::kLost);
    mock_.faults.check(Call::kRun);
    mock_.meet();
    Plan::execute(run);
}

/// Scratch is nobody's before and after: whoever lies there while the group runs is ruined.
void MockPlan::spoil(uint32_t group, std::byte *scratch) const {
    if (mock_.fuse() == Fuse::kRandom && scratch != nullptr) std::memset(scratch, 0xc5, groups[group].scratch_bytes);
}

void MockPlan::run_group(uint32_t group, const RunView &run) {
    const Fusion::Group &fused = fusion_.groups[group];
    mock_.faults.pause();
    auto *scratch = run.scratch<std::byte>(group);
    const Memory memory{&run, fusion_.unstored_at, scratch};
    if (hazards_ != nullptr) hazards_->begin(group, run);
    spoil(group, scratch);
    for (uint32_t n : fusion_.nodes(fused)) {
        const NodeView &node = graph().node(n);
        if (hazards_ != nullptr) hazards_->check_inputs(node, run);
        kernels_[n]->run(node, memory, scratch + fused.unstored_bytes);
        if (wrong_[n]) make_wrong(node, memory);
        if (hazards_ != nullptr) hazards_->mark_outputs(node, run);
    }
    spoil(group, scratch);
    if (hazards_ != nullptr) hazards_->end(group, fusion_.nodes(fused), run);
}

bool MockPlan::update(const GraphView &next) {
    for (const NodeView &node : next.nodes()) {  // binds and scratch stay, so scratch must not grow
        const Kernel &kernel = *kernels_[node.index];
        if (kernel.scratch(node) != kernel.scratch(graph().node(node.index))) return false;
    }
    return true;
}

}  // namespace mock
