// A segment on the mock device: groups as fusing.h found them, kernels as they stand in the tables.
#ifndef TENON_TESTS_MOCK_PLAN_H
#define TENON_TESTS_MOCK_PLAN_H

#include "device.h"
#include "fusing.h"
#include "plan_hazards.h"

namespace mock {

class MockPlan : public Plan {
public:
    MockPlan(MockDevice &device, std::shared_ptr<const GraphView> graph);
    void execute(const RunView &run) override;
    void run_group(uint32_t group, const RunView &run) override;
    void placed() override;
    std::shared_ptr<void> bound(const BoundSet &set) override;
    /// Nodes read their params from the graph, so that a new one is all it takes.
    bool update(const GraphView &next) override;

    const Fusion &fusion() const { return fusion_; }

private:
    void answer();
    void find_wrong_nodes();
    void spoil(uint32_t group, std::byte *scratch) const;

    MockDevice &mock_;
    Fusion fusion_;
    std::vector<const Kernel *> kernels_;  // of each node
    std::vector<bool> wrong_;              // nodes that are to be computed wrongly
    std::unique_ptr<PlanHazards> hazards_;
};

}  // namespace mock
#endif
