// A run that stops at each node that was asked for: segment by segment, on the calling thread, one device at a time.
#pragma once

#include "sched/pipeline.h"

namespace tenon {

class ShownRun {
public:
    /// Nothing else is in flight, and room has been made.
    ShownRun(Pipeline &pipeline, const std::shared_ptr<Executable> &keep, BoundGraph &graph, uint64_t token);
    /// Ends what hasn't ended.
    ~ShownRun() { (void)finish(); }
    ShownRun(const ShownRun &) = delete;
    ShownRun &operator=(const ShownRun &) = delete;

    /// Runs until the next node that was asked for has ended, and answers it; all the rest, and k_no_value, where there
    /// is no other.
    Result<NodeId> next();
    /// Waits for all that has been queued. The first failure of the run, here or in next(), is the one that counts.
    Status finish();
    /// Outputs of the node that next() has just answered.
    class Outputs final : public NodeOutputs {
    public:
        Outputs(const ShownRun &run, NodeId node);
        size_t count() const override { return node_.outputs.size(); }
        Status read(size_t index, std::span<std::byte> bytes, uint64_t offset) const override;
        Status write(size_t index, std::span<const std::byte> bytes, uint64_t offset) override;

    private:
        Status check(size_t index) const;
        Located locate(size_t index) const;
        const BoundGraph &graph_;
        const uint32_t slot_;
        const Node &node_;
    };

private:
    Status run_segment(uint32_t segment);
    Status synchronize(uint32_t device);

    Pipeline &pipeline_;
    BoundGraph &graph_;
    Flight &flight_;
    uint32_t next_segment_ = 0;
    bool is_started_ = false, has_ended_ = false;
};

}  // namespace tenon
