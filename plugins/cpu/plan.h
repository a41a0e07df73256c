// A segment made ready: nodes become groups (most of them alone, norms with the products that read them), groups become
// kernels, and a run is one job of the team: the phases of all kernels, one after the other.
#pragma once

#include "device.h"

namespace tenon::cpu {

class CpuPlan final : public plugin::Plan {
public:
    CpuPlan(CpuDevice &device, std::shared_ptr<const plugin::GraphView> graph);

    void execute(const plugin::RunView &run) override;
    std::shared_ptr<void> bound(const plugin::BoundSet &set) override;

private:
    // One group: its kernel, and the values that its Args point to, in the kernel's order.
    struct Step {
        std::unique_ptr<Kernel> kernel;
        std::vector<uint32_t> inputs, outputs;  // values; TN_NONE: absent
    };
    // A set's addresses, and each step's Args over them.
    struct Addresses {
        std::vector<const std::byte *> inputs;
        std::vector<std::byte *> outputs;
        std::vector<Args> args;
    };
    class Run;

    void add_alone(const plugin::NodeView &node);
    void add_norm_linear(const plugin::NodeView &norm, const std::vector<uint32_t> &products);
    void add_step(Step step, std::span<const uint32_t> nodes);

    CpuDevice &device_;
    std::vector<Step> steps_;
};

// The nodes that may join this rms_norm: all the readers of its output, if each is a linear that reads it as its
// activations and could run where the norm runs; otherwise none.
std::vector<uint32_t> products_of_norm(const plugin::GraphView &graph, const plugin::NodeView &norm);

// Whether output 0 of a node may be written where its input 0 lies: ops.def allows it, both are whole values of one
// layout, and nobody else needs the input, neither as a view nor later.
bool may_work_in_place(const plugin::GraphView &graph, const plugin::NodeView &node);

}  // namespace tenon::cpu
