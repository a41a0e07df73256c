#include "registry/plan_answers.h"

#include <doctest/doctest.h>

#include <deque>

#include "tenon/ops.h"

using namespace tenon;

namespace {

// x, y inputs; t = x + y; v = a view of t; u = v + x; cache (state); c = kv_append(cache, u), which is the cache; z = c
// + t, observed.
struct Example {
    enum { X, Y, T, V, U, CACHE, C, Z, COUNT };
    std::vector<tn_value> values;
    std::vector<tn_node> nodes;
    std::deque<std::vector<uint32_t>> operands;
    tn_graph graph{};
    PlanAnswers answers;

    Example() {
        values.resize(COUNT);
        for (tn_value &v : values) {
            v.struct_size = TN_SIZE_VALUE;
            v.view_of = v.buffer_type = TN_NONE;
        }
        values[X].flags = values[Y].flags = TN_VALUE_INPUT;
        values[T].name = "t";
        values[V].view_of = T;
        values[CACHE].flags = TN_VALUE_STATE;
        values[C].view_of = CACHE;
        values[Z].flags = TN_VALUE_OBSERVED;
        node(TN_OP_ADD, {X, Y}, T);
        node(TN_OP_ADD, {V, X}, U);
        node(TN_OP_KV_APPEND, {CACHE, U, TN_NONE}, C);
        node(TN_OP_ADD, {C, T}, Z);
        graph.struct_size = TN_SIZE_GRAPH;
        graph.values = values.data(), graph.value_count = COUNT, graph.value_stride = sizeof(tn_value);
        graph.nodes = nodes.data(), graph.node_count = nodes.size(), graph.node_stride = sizeof(tn_node);
        answers.group_scratch = {0, 0, 0, 0};
        answers.node_groups = {0, 1, 2, 3};
    }
    void node(uint32_t op, std::vector<uint32_t> inputs, uint32_t output) {
        tn_node n{};
        n.struct_size = TN_SIZE_NODE;
        n.op = op;
        n.input_count = uint32_t(inputs.size());
        n.output_count = 1;
        inputs.push_back(output);
        n.inputs = operands.emplace_back(std::move(inputs)).data();
        n.outputs = n.inputs + n.input_count;
        nodes.push_back(n);
    }
    bool ok() { return check_plan_answers(graph, answers).ok(); }
    bool breaks(const char *duty) {
        Status status = check_plan_answers(graph, answers);
        return status.code() == Code::internal && status.message().starts_with(std::string(duty) + " is broken");
    }
};

}  // namespace

TEST_CASE("plan answers: a group per node, and all nodes in one group, are right") {
    Example e;
    CHECK(e.ok());
    e.answers.group_scratch = {64};
    e.answers.node_groups = {0, 0, 0, 0};
    e.answers.unstored = {Example::U};
    CHECK(e.ok());
}

TEST_CASE("plan answers: D34, the order keeps reads after writes") {
    Example e;
    e.answers.node_groups = {1, 0, 2, 3};  // u reads t, through a view, before it is written
    CHECK(e.breaks("D34"));
    e.answers.node_groups = {0, 2, 1, 3};  // the cache takes u before it is made
    CHECK(e.breaks("D34"));
    e.answers.node_groups = {0, 1, 3, 2};  // the cache is read, as c, before it is written
    CHECK(e.breaks("D34"));
    CHECK_MESSAGE(check_plan_answers(e.graph, e.answers).message().find("node 3") != std::string::npos,
                  "names the node");
}

TEST_CASE("plan answers: D34, the order keeps writes of state after earlier reads") {
    Example e;
    // Another reader of the old cache, before the append in node order.
    e.nodes.clear();
    e.node(TN_OP_ADD, {Example::CACHE, Example::X}, Example::T);
    e.node(TN_OP_KV_APPEND, {Example::CACHE, Example::X, TN_NONE}, Example::C);
    e.graph.nodes = e.nodes.data(), e.graph.node_count = 2;
    e.answers.group_scratch = {0, 0};
    e.answers.node_groups = {0, 1};
    CHECK(e.ok());
    e.answers.node_groups = {1, 0};
    CHECK(e.breaks("D34"));
}

TEST_CASE("plan answers: D35, one group that exists for each node") {
    Example e;
    e.answers.node_groups = {0, 1, 2};
    CHECK(e.breaks("D35"));
    e.answers.node_groups = {0, 1, 2, 4};
    CHECK(e.breaks("D35"));
}

TEST_CASE("plan answers: D36, what needs no storage is made and used up in one group") {
    Example e;
    e.answers.group_scratch = {0, 0};
    e.answers.node_groups = {0, 1, 1, 1};
    e.answers.unstored = {Example::U};
    CHECK(e.ok());
    for (uint32_t v : {Example::X, Example::T, Example::V, Example::CACHE, Example::C, Example::Z, Example::COUNT}) {
        e.answers.unstored = {v};
        CHECK_MESSAGE(e.breaks("D36"), v);
    }
    e.answers.unstored = {Example::U};
    e.answers.group_scratch = {0, 0, 0, 0};
    e.answers.node_groups = {0, 1, 2, 3};
    CHECK(e.breaks("D36"));  // made in one group, used in another
}

TEST_CASE("plan answers: D37, an offer is of one group, each output once") {
    Example e;
    e.answers.in_place = {{Example::T, Example::X}, {Example::Z, Example::T}};
    CHECK(e.ok());
    e.answers.in_place = {{Example::T, Example::X}, {Example::T, Example::Y}};
    CHECK(e.breaks("D37"));
    e.answers.in_place = {{Example::Z, Example::X}};
    CHECK(e.breaks("D37"));
    e.answers.in_place = {{Example::X, Example::Y}};
    CHECK(e.breaks("D37"));
    e.answers.in_place = {{Example::COUNT, Example::Y}};
    CHECK(e.breaks("D37"));
}

TEST_CASE("plan answers: a graph that names values it hasn't got isn't walked") {
    Example e;
    e.values[Example::V].view_of = 77;
    CHECK(check_plan_answers(e.graph, e.answers).code() == Code::invalid_argument);
    Example f;
    f.operands[0][0] = Example::COUNT;
    CHECK(check_plan_answers(f.graph, f.answers).code() == Code::invalid_argument);
}
