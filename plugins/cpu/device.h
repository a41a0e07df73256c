// The CPU as the host sees it: one adapter; devices with a thread team, a chosen instruction set and host memory.
#pragma once

#include "isa.h"
#include "kernel.h"
#include "team.h"
#include "tenon/plugin.hpp"

namespace tenon::cpu {

class CpuAdapter final : public plugin::Adapter {
public:
    explicit CpuAdapter(plugin::Instance &instance);
    // All memory of the machine, and what the system says could be had without swapping.
    Memory memory() const override;
    // Options: threads (1 to Team::max_threads; default: the physical cores that the process may use), isa (see isa.h;
    // default auto). What isn't given here is looked for among the user's options for this plugin.
    std::unique_ptr<plugin::Device> open(plugin::Options &options) override;
};

class CpuDevice final : public plugin::Device {
public:
    CpuDevice(CpuAdapter &adapter, unsigned threads, Features features, std::string isa_name);

    plugin::Support support(const plugin::GraphView &graph, const plugin::NodeView &node) const override;
    bool supports_buffer_type(const plugin::BufferTypeView &type) const override { return type.is_plain_host(); }
    std::unique_ptr<plugin::Plan> prepare(std::shared_ptr<const plugin::GraphView> graph) override;
    // threads: waits for the run that is in progress. isa is fixed once the device is open.
    void set_option(std::string_view key, std::string_view value) override;
    std::optional<std::string> option(std::string_view key) const override;

    Team &team() noexcept { return team_; }
    Features features() const noexcept { return features_; }

private:
    const Features features_;
    const std::string isa_name_;
    Team team_;
};

// A node in the kernels' terms.
Problem problem_of(const plugin::NodeView &node);

}  // namespace tenon::cpu
