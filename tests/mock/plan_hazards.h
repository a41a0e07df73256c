// The hazard checker of a plan's runs: which tags its values must carry, and the checks around each group.
//
// Values that only this plan's nodes can see have tags of their own; all others go by their names, so that segments and
// devices understand each other.
#ifndef TENON_TESTS_MOCK_PLAN_HAZARDS_H
#define TENON_TESTS_MOCK_PLAN_HAZARDS_H

#include "hazards.h"

namespace mock {

using tenon::plugin::GraphView;
using tenon::plugin::NodeView;
using tenon::plugin::Place;
using tenon::plugin::Plan;
using tenon::plugin::RunView;

class PlanHazards {
public:
    /// plan: with its answers; outlives this.
    PlanHazards(Names &names, const Plan &plan);
    /// Once values have places: finds the offers that the host took.
    void placed();

    // Of one run, in this order; they throw what `report` says. Sets may run at once.
    void begin(uint32_t group, const RunView &run) const;
    void check_inputs(const NodeView &node, const RunView &run) const;
    void mark_outputs(const NodeView &node, const RunView &run) const;
    void end(uint32_t group, std::span<const uint32_t> nodes, const RunView &run) const;

private:
    const ValueView &value(uint32_t v) const { return plan_.graph().value(v); }
    bool is_stored(uint32_t v) const;
    void check(const NodeView &node, uint32_t v, const RunView &run) const;

    Names &names_;
    const Plan &plan_;
    std::vector<Expected> expected_;       // of each value, without the run's token
    std::vector<bool> unstored_;           // of each value
    std::vector<uint32_t> scratch_names_;  // of each group
    std::vector<uint32_t> reused_in_;      // of each value: the group that writes another where it lies; TN_NONE
};

}  // namespace mock
#endif
