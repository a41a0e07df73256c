#include "registry/plan_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

namespace tenon {
namespace {

constexpr uint32_t k_none = TN_NONE;

// A graph's arrays by index, with their strides.
class GraphReader {
public:
    explicit GraphReader(const tn_graph &graph) : g_(graph) {}
    const tn_value &value(uint64_t i) const { return at(g_.values, g_.value_stride, i); }
    const tn_node &node(uint64_t i) const { return at(g_.nodes, g_.node_stride, i); }
    uint32_t base(uint32_t v) const { return value(v).view_of == TN_NONE ? v : value(v).view_of; }
    std::string name(uint32_t v) const {
        const char *name = value(v).name;
        return name ? fmt::format("value {} ({})", v, name) : fmt::format("value {}", v);
    }
    static std::span<const uint32_t> inputs(const tn_node &n) { return {n.inputs, n.input_count}; }
    static std::span<const uint32_t> outputs(const tn_node &n) { return {n.outputs, n.output_count}; }

    Status check() const {
        for (uint64_t i = 0; i < g_.node_count; ++i) {
            auto known = [&](uint32_t v) { return v < g_.value_count; };
            bool ok = std::ranges::all_of(inputs(node(i)), [&](uint32_t v) { return v == TN_NONE || known(v); }) &&
                      std::ranges::all_of(outputs(node(i)), known);
            if (!ok) return Status::invalid_argument(fmt::format("node {} names a value that the graph hasn't got", i));
        }
        for (uint64_t v = 0; v < g_.value_count; ++v)
            if (value(v).view_of != TN_NONE && value(v).view_of >= g_.value_count) {
                return Status::invalid_argument(fmt::format("value {} views one that the graph hasn't got", v));
            }
        return {};
    }

private:
    template <class T>
    static const T &at(const T *array, uint64_t stride, uint64_t i) {
        return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(array) + i * stride);
    }
    const tn_graph &g_;
};

// Where the bytes of one value (a base) are touched.
struct Use {
    uint32_t written = k_none;               // last group that wrote it so far
    uint32_t read = k_none;                  // last group that read it so far
    uint32_t first = k_none, last = k_none;  // groups that touch it at all
    bool made = false;                       // a node writes it
};

Status broken(const char *duty, std::string text) {
    return Status::internal(fmt::format("{} is broken: {}", duty, text));
}

Status check_groups(const tn_graph &graph, const PlanAnswers &a) {
    if (a.node_groups.size() != graph.node_count) {
        return broken("D35",
                      fmt::format("groups are given for {} nodes of {}", a.node_groups.size(), graph.node_count));
    }
    for (size_t i = 0; i < a.node_groups.size(); ++i)
        if (a.node_groups[i] >= a.group_scratch.size()) {
            return broken("D35",
                          fmt::format("node {} is in group {} of {}", i, a.node_groups[i], a.group_scratch.size()));
        }
    return {};
}

// Two nodes that touch the same bytes, one of them writing, keep their order: of values, of views and of state (D34).
Status walk(const tn_graph &graph, const GraphReader &g, const PlanAnswers &a, std::vector<Use> &uses) {
    auto after = [](uint32_t group, uint32_t earlier) { return earlier == k_none || group >= earlier; };
    auto latest = [](uint32_t &group, uint32_t other) { group = group == k_none ? other : std::max(group, other); };
    for (uint64_t i = 0; i < graph.node_count; ++i) {
        const uint32_t group = a.node_groups[i];
        auto late = [&](uint32_t v, const char *how) {
            return broken(
                "D34", fmt::format("node {} runs in group {}, before the group that {} {}", i, group, how, g.name(v)));
        };
        auto touch = [&](Use &use) {
            use.first = std::min(use.first, group);
            latest(use.last, group);
        };
        for (uint32_t v : g.inputs(g.node(i))) {
            if (v == TN_NONE) continue;
            Use &use = uses[g.base(v)];
            if (!after(group, use.written)) return late(v, "writes");
            latest(use.read, group);
            touch(use);
        }
        for (uint32_t v : g.outputs(g.node(i))) {
            Use &use = uses[g.base(v)];
            if (!after(group, use.written)) return late(v, "writes");
            if (!after(group, use.read)) return late(v, "still reads");
            use.written = group;
            use.made = true;
            touch(use);
        }
    }
    return {};
}

Status check_unstored(const tn_graph &graph, const GraphReader &g, const PlanAnswers &a, const std::vector<Use> &uses) {
    std::vector<bool> viewed(graph.value_count);
    for (uint64_t v = 0; v < graph.value_count; ++v)
        if (g.value(v).view_of != TN_NONE) viewed[g.value(v).view_of] = true;
    for (uint32_t v : a.unstored) {
        if (v >= graph.value_count)
            return broken("D36", fmt::format("value {} of {} is said to need no storage", v, graph.value_count));
        auto refuse = [&](const char *why) {
            return broken("D36", fmt::format("{} is said to need no storage, but {}", g.name(v), why));
        };
        if (g.value(v).flags & TN_VALUE_OBSERVED) return refuse("it is observed");
        if (g.value(v).flags & (TN_VALUE_INPUT | TN_VALUE_WEIGHT | TN_VALUE_STATE))
            return refuse("it comes from outside");
        if (g.value(v).view_of != TN_NONE) return refuse("it is a view");
        if (viewed[v]) return refuse("another value views it");
        if (!uses[v].made) return refuse("no node makes it");
        if (uses[v].first != uses[v].last) return refuse("it is used in more than one group");
    }
    return {};
}

Status check_in_place(const tn_graph &graph, const GraphReader &g, const PlanAnswers &a) {
    // (value, group) of outputs and inputs.
    std::set<std::pair<uint32_t, uint32_t>> written, read;
    for (uint64_t i = 0; i < graph.node_count && !a.in_place.empty(); ++i) {
        for (uint32_t v : g.outputs(g.node(i))) written.emplace(v, a.node_groups[i]);
        for (uint32_t v : g.inputs(g.node(i))) read.emplace(v, a.node_groups[i]);
    }
    std::set<uint32_t> seen;
    for (auto [output, input] : a.in_place) {
        if (output >= graph.value_count || input >= graph.value_count) {
            return broken(
                "D37", fmt::format("an in-place offer names values {} and {} of {}", output, input, graph.value_count));
        }
        if (!seen.insert(output).second)
            return broken("D37", fmt::format("two in-place offers name {}", g.name(output)));
        auto made = written.lower_bound({output, 0});
        if (made == written.end() || made->first != output || !read.contains({input, made->second})) {
            return broken("D37",
                          fmt::format("an in-place offer names {} and {}, which are no output and input of one group",
                                      g.name(output), g.name(input)));
        }
    }
    return {};
}

}  // namespace

Status check_plan_answers(const tn_graph &graph, const PlanAnswers &answers) {
    const GraphReader g(graph);
    TENON_TRY(g.check());
    TENON_TRY(check_groups(graph, answers));
    std::vector<Use> uses(graph.value_count);
    TENON_TRY(walk(graph, g, answers, uses));
    TENON_TRY(check_unstored(graph, g, answers, uses));
    return check_in_place(graph, g, answers);
}

}  // namespace tenon
