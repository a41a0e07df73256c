#include "plan.h"

#include <algorithm>

#include "fused.h"

namespace tenon::cpu {
namespace {

bool is_viewed(const plugin::GraphView &graph, uint32_t value) {
    return std::ranges::any_of(graph.values(), [&](const plugin::ValueView &v) { return v.view_of == value; });
}

// A value of its own bytes that only nodes of this segment read, by its own name.
bool is_private(const plugin::GraphView &graph, uint32_t value) {
    const plugin::ValueView &v = graph.value(value);
    return v.flags == 0 && v.view_of == TN_NONE && !is_viewed(graph, value);
}

bool reads(const plugin::NodeView &node, uint32_t value) {
    return std::ranges::find(node.inputs, value) != node.inputs.end();
}

bool writes_base(const plugin::GraphView &graph, const plugin::NodeView &node, uint32_t base) {
    return std::ranges::any_of(node.outputs, [&](uint32_t v) { return graph.base(v) == base; });
}

}  // namespace

std::vector<uint32_t> products_of_norm(const plugin::GraphView &graph, const plugin::NodeView &norm) {
    const uint32_t normal = norm.outputs[0];
    if (!is_private(graph, normal)) return {};
    std::vector<uint32_t> products;
    for (const plugin::NodeView &node : graph.nodes().subspan(norm.index + 1)) {
        if (!reads(node, normal)) continue;
        if (node.op != TN_OP_LINEAR || node.inputs[0] != normal || node.inputs[1] == normal) return {};
        if (graph.value(node.outputs[0]).view_of != TN_NONE) return {};
        // The product moves up to the norm: its weight must be there by then.
        for (uint32_t i = norm.index + 1; i < node.index; ++i) {
            if (writes_base(graph, graph.node(i), graph.base(node.inputs[1]))) return {};
        }
        products.push_back(node.index);
    }
    return products;
}

bool may_work_in_place(const plugin::GraphView &graph, const plugin::NodeView &node) {
    const plugin::OpInfo *op = plugin::find_op(node.op);
    if (op == nullptr || op->alias != plugin::OpAlias::kMay0) return false;
    const plugin::ValueView &input = node.input(0), &output = node.output(0);
    if (!is_private(graph, input.index) || output.view_of != TN_NONE) return false;
    if (input.type != output.type || !input.same_shape(output) || !input.is_contiguous() || !output.is_contiguous())
        return false;
    return std::ranges::none_of(graph.nodes().subspan(node.index + 1),
                                [&](const plugin::NodeView &later) { return reads(later, input.index); });
}

CpuPlan::CpuPlan(CpuDevice &device, std::shared_ptr<const plugin::GraphView> from)
    : Plan(device, std::move(from)), device_(device) {
    node_groups.assign(graph().nodes().size(), TN_NONE);
    for (const plugin::NodeView &node : graph().nodes()) {
        if (node_groups[node.index] != TN_NONE) continue;  // a product that joined its norm
        const std::vector<uint32_t> products =
            node.op == TN_OP_RMS_NORM ? products_of_norm(graph(), node) : std::vector<uint32_t>();
        if (products.empty()) {
            add_alone(node);
        } else {
            add_norm_linear(node, products);
        }
    }
}

void CpuPlan::add_step(Step step, std::span<const uint32_t> nodes) {
    for (uint32_t node : nodes) node_groups[node] = uint32_t(groups.size());
    groups.push_back({step.kernel->scratch_bytes()});
    steps_.push_back(std::move(step));
}

void CpuPlan::add_alone(const plugin::NodeView &node) {
    Step step;
    step.kernel = find_op(node.op)->make(problem_of(node), device_.features());
    step.inputs.assign(node.inputs.begin(), node.inputs.end());
    step.outputs.assign(node.outputs.begin(), node.outputs.end());
    if (may_work_in_place(graph(), node)) in_place.push_back({node.outputs[0], node.inputs[0]});
    add_step(std::move(step), std::array{node.index});
}

void CpuPlan::add_norm_linear(const plugin::NodeView &norm, const std::vector<uint32_t> &products) {
    Step step;
    step.inputs = {norm.inputs[0], norm.has_input(1) ? norm.inputs[1] : TN_NONE};
    std::vector<Problem> problems;
    std::vector<uint32_t> nodes = {norm.index};
    for (uint32_t index : products) {
        const plugin::NodeView &product = graph().node(index);
        problems.push_back(problem_of(product));
        step.inputs.push_back(product.inputs[1]);
        step.outputs.push_back(product.outputs[0]);
        nodes.push_back(index);
    }
    step.kernel = make_norm_linear(problem_of(norm), problems, device_.features());
    unstored.push_back(norm.outputs[0]);
    add_step(std::move(step), nodes);
}

std::shared_ptr<void> CpuPlan::bound(const plugin::BoundSet &set) {
    auto own = std::make_shared<Addresses>();
    size_t inputs = 0, outputs = 0;
    for (const Step &step : steps_) {
        inputs += step.inputs.size();
        outputs += step.outputs.size();
    }
    own->inputs.reserve(inputs);  // Args point into these
    own->outputs.reserve(outputs);
    for (size_t i = 0; i < steps_.size(); ++i) {
        own->args.push_back(
            {own->inputs.data() + own->inputs.size(), own->outputs.data() + own->outputs.size(), set.scratch[i]});
        for (uint32_t v : steps_[i].inputs) own->inputs.push_back(v == TN_NONE ? nullptr : set.values[v]);
        for (uint32_t v : steps_[i].outputs) own->outputs.push_back(set.values[v]);
    }
    return own;
}

// The phases of all steps; the token is asked before each step.
class CpuPlan::Run final : public Job {
public:
    Run(const CpuPlan &plan, const plugin::RunView &view)
        : plan_(plan), view_(view), addresses_(*view.user<Addresses>()) {}

    int64_t next() noexcept override {
        for (;;) {
            if (++phase_ >= phases_) {
                if (++step_ == plan_.steps_.size()) return 0;
                if (view_.cancelled()) {
                    stopped_ = true;
                    return 0;
                }
                phase_ = 0;
                phases_ = kernel().phases();
            }
            if (const int64_t pieces = kernel().pieces(phase_); pieces > 0) return pieces;
        }
    }
    void piece(int64_t i) noexcept override { kernel().piece(addresses_.args[step_], phase_, i); }
    bool stopped() const noexcept { return stopped_; }

private:
    const Kernel &kernel() const noexcept { return *plan_.steps_[step_].kernel; }

    const CpuPlan &plan_;
    const plugin::RunView &view_;
    const Addresses &addresses_;
    size_t step_ = size_t(-1);  // before the first
    int phase_ = -1, phases_ = 0;
    bool stopped_ = false;
};

void CpuPlan::execute(const plugin::RunView &view) {
    Run run(*this, view);
    device_.team().run(run);
    if (!run.stopped()) return;
    view.check_cancelled();
    plugin::fail(TN_CANCELLED, "the run was cancelled");
}

}  // namespace tenon::cpu
