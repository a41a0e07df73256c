// What a plugin answers after prepare, and whether the host may plan memory by it. Wrong answers would corrupt values
// silently, so each is checked against its duty in abi.h (D34 to D37) before anything is placed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tenon/abi.h"
#include "tenon/status.h"

namespace tenon {

struct PlanAnswers {
    std::vector<uint64_t> group_scratch;                  // bytes, one per group, in running order
    std::vector<uint32_t> node_groups;                    // one per node
    std::vector<uint32_t> unstored;                       // values, rising
    std::vector<std::pair<uint32_t, uint32_t>> in_place;  // (output, input)
};

/// internal: names the duty that is broken, with node and value. The graph is the one that was prepared; a graph that
/// names values it hasn't got is invalid_argument. Pure; any thread.
Status check_plan_answers(const tn_graph &graph, const PlanAnswers &answers);

}  // namespace tenon
