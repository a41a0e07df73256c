#include "sched/memory.h"

#include <doctest/doctest.h>

#include <random>

using namespace tenon;

namespace {

/// Checks from the definition alone: aligned, inside, and no two that live at once share a byte.
void check_plan(const std::vector<Interval> &intervals, const MemoryPlan &plan) {
    REQUIRE(plan.offsets.size() == intervals.size());
    CHECK(plan.bytes >= plan.lower_bound_bytes);
    for (size_t i = 0; i < intervals.size(); ++i) {
        if (intervals[i].bytes == 0) continue;
        CHECK(plan.offsets[i] % intervals[i].alignment == 0);
        CHECK(plan.offsets[i] + intervals[i].bytes <= plan.bytes);
        for (size_t k = 0; k < i; ++k) {
            const bool together = intervals[i].first <= intervals[k].last && intervals[k].first <= intervals[i].last;
            const bool apart = plan.offsets[i] + intervals[i].bytes <= plan.offsets[k] ||
                               plan.offsets[k] + intervals[k].bytes <= plan.offsets[i] || intervals[k].bytes == 0;
            CHECK((!together || apart));
        }
    }
}

}  // namespace

TEST_CASE("memory: a chain of equal values needs two places") {
    std::vector<Interval> chain;
    for (uint32_t i = 0; i < 20; ++i) chain.push_back({256, 64, i, i + 1});
    const MemoryPlan plan = plan_memory(chain);
    check_plan(chain, plan);
    CHECK(plan.bytes == 512);
    CHECK(plan.lower_bound_bytes == 512);
}

TEST_CASE("memory: nothing, empty intervals, one instant") {
    CHECK(plan_memory({}).bytes == 0);
    const std::vector<Interval> some = {{0, 64, 0, 5}, {8, 8, 3, 3}, {0, 1, 3, 3}};
    const MemoryPlan plan = plan_memory(some);
    check_plan(some, plan);
    CHECK(plan.bytes == 8);
}

TEST_CASE("memory: random lifetimes, sizes and alignments never overlap, and the same input gives the same plan") {
    for (uint32_t seed = 1; seed <= 40; ++seed) {
        std::mt19937 random(seed);
        std::vector<Interval> intervals(1 + random() % 120);
        for (Interval &interval : intervals) {
            interval.bytes = random() % 5000;
            interval.alignment = uint64_t(1) << random() % 13;
            interval.first = random() % 60;
            interval.last = interval.first + random() % 20;
        }
        INFO("seed ", seed);
        const MemoryPlan plan = plan_memory(intervals);
        check_plan(intervals, plan);
        CHECK(plan_memory(intervals).offsets == plan.offsets);
    }
}
