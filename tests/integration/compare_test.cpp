// Node by node against another device; and what runs that are shown promise.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "random_graph.h"
#include "tenon/compare.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

/// The same graph on two devices.
struct Pair {
    explicit Pair(const Graph &graph, const Data &weights, const std::string &tested, const std::string &reference,
                  std::vector<Pin> pins = {})
        : graph(graph) {
        left.registry = right.registry = make_registry("5");
        require_ok(left.prepare(graph, tested, weights, std::move(pins)));
        require_ok(right.prepare(graph, reference, weights));
    }

    Result<std::vector<NodeDifference>> compare(const Data &inputs, uint64_t token = 0) {
        std::vector<InputValue> values;
        for (ValueId input : graph.inputs()) values.push_back({input, inputs.at(graph.values()[input].name)});
        std::vector<NodeDifference> found;
        TENON_TRY(tenon::compare(
            graph, {*left.session, left.tensors}, {*right.session, right.tensors}, values,
            [&](const NodeDifference &difference) {
                found.push_back(difference);
                return Status();
            },
            token));
        return found;
    }

    const Graph &graph;
    Runner left, right;
};

std::vector<NodeDifference> differences(Pair &pair, const Data &inputs) {
    auto found = pair.compare(inputs);
    REQUIRE_MESSAGE(found.ok(), found.status().message());
    return *std::move(found);
}

}  // namespace

TEST_CASE("compare: equal devices are equal in every output of every node, however the tested side is spread") {
    for (uint32_t seed = 1; seed < 8; ++seed) {
        CAPTURE(seed);
        RandomGraph graph(seed, 40);
        Pair pair(graph.graph(), graph.weights(seed), "mock:0,mock:1,mock:2:fuse=random,mock:3", "mock:4",
                  graph.pins("mock", 4, 5, 30));
        size_t outputs = 0;
        for (const Node &node : graph.graph().nodes()) outputs += node.outputs.size();
        for (uint32_t run = 0; run < 3; ++run) {
            const auto found = differences(pair, RandomGraph::inputs(run));
            CHECK(found.size() == outputs);
            CHECK(std::ranges::is_sorted(found, {}, &NodeDifference::node));
            for (const NodeDifference &d : found) {
                CHECK(d.difference.nmse == 0);
                CHECK(d.within());
            }
        }
        // States went along: an ordinary run goes on from where the comparisons left them, on both sides.
        require_ok(pair.left.run(RandomGraph::inputs(9)));
        require_ok(pair.right.run(RandomGraph::inputs(9)));
        CHECK(pair.left.output(0) == pair.right.output(0));
    }
}

TEST_CASE("compare: exactly the nodes of the op that a device gets wrong are found") {
    for (const char *op : {"sub", "abs", "concat", "relu", "linear"}) {
        CAPTURE(std::string(op));
        bool is_used = false;
        for (uint32_t seed = 1; seed < 6; ++seed) {
            CAPTURE(seed);
            RandomGraph graph(seed, 60);
            Pair pair(graph.graph(), graph.weights(seed), fmt::format("mock:1:composites=1:wrong={}", op), "mock:0");
            for (const NodeDifference &d : differences(pair, RandomGraph::inputs(seed))) {
                const Node &node = graph.graph().nodes()[d.node];
                CAPTURE(std::string(std::string_view(node.name)));
                const bool is_wrong = graph.graph().op(node).name == op;
                is_used = is_used || is_wrong;
                CHECK(d.within() == !is_wrong);
                if (is_wrong) CHECK(d.difference.got != d.difference.expected);
            }
        }
        CHECK(is_used);
    }
}

TEST_CASE("compare: the tested side starts from the reference's states") {
    RandomGraph graph(4, 40);
    Pair pair(graph.graph(), graph.weights(4), "mock:1", "mock:0");
    for (uint32_t run = 0; run < 3; ++run) require_ok(pair.right.run(RandomGraph::inputs(run)));
    for (const NodeDifference &d : differences(pair, RandomGraph::inputs(5))) CHECK(d.difference.nmse == 0);
}

TEST_CASE("compare: limits by op, precision and type") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {4, 32});
    const ValueId w = b.weight("w", DType::f32, {32, 32});
    const ValueId product = b.linear(x, w, k_no_value);
    const ValueId half = b.copy(product, DType::f16);
    b.set_precision(Precision::exact);
    const ValueId exact = b.linear(x, w, k_no_value);
    const ValueId best = b.node(TN_OP_ARGMAX, {exact});
    for (ValueId id : {half, exact, best}) b.output(id);
    auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    Pair pair(*graph, {{"w", random_floats(32 * 32, 1)}}, "mock:1", "mock:0");
    const auto found = differences(pair, {{"x", random_floats(4 * 32, 2)}});
    REQUIRE(found.size() == 4);
    CHECK(found[0].limit == 2e-2);
    CHECK(found[1].limit == 1e-6);
    CHECK(found[2].limit == 1e-9);
    CHECK(found[3].limit == 0);
}

TEST_CASE("compare: failures name the side, and both stay usable") {
    RandomGraph graph(2, 40);
    const Data weights = graph.weights(2);
    Pair pair(graph.graph(), weights, "mock:1", "mock:0");
    for (Runner *side : {&pair.left, &pair.right}) {
        const auto &device = side->session->devices()[0];
        for (const char *option : {"fail_run", "fail_get"}) {
            require_ok(device->set_option(option, "3"));
            const auto failed = pair.compare(RandomGraph::inputs(0));
            REQUIRE(!failed.ok());
            CHECK(std::string(failed.status().message()).find(side == &pair.left ? "tested side" : "reference") !=
                  std::string::npos);
            require_ok(device->set_option(option, "0"));
            for (const NodeDifference &d : differences(pair, RandomGraph::inputs(1))) CHECK(d.difference.nmse == 0);
        }
    }
    const Status ended =
        tenon::compare(graph.graph(), {*pair.left.session, pair.left.tensors},
                       {*pair.right.session, pair.right.tensors}, {}, [](const NodeDifference &) { return Status(); });
    CHECK(ended.code() == Code::ok);  // inputs keep what they had
    int told = 0;
    const auto stop = [&](const NodeDifference &) {
        return ++told == 4 ? Status(Code::cancelled, "enough") : Status();
    };
    const CompareSide left{*pair.left.session, pair.left.tensors}, right{*pair.right.session, pair.right.tensors};
    CHECK(tenon::compare(graph.graph(), left, right, {}, stop).code() == Code::cancelled);
    CHECK(told == 4);
    CHECK(tenon::compare(graph.graph(), left, {*pair.left.session, pair.right.tensors}, {}, stop).code() ==
          Code::invalid_argument);
    CHECK(tenon::compare(graph.graph(), left, {*pair.right.session, {}}, {}, stop).code() == Code::invalid_argument);
    CHECK(differences(pair, RandomGraph::inputs(1)).size() > 4);
}

TEST_CASE("shown runs: each asked node once, in order, with the values of an ordinary run; the rest in ranges") {
    for (uint32_t seed = 1; seed < 6; ++seed) {
        CAPTURE(seed);
        RandomGraph graph(seed, 50);
        const Data weights = graph.weights(seed);
        Runner plain, shown;
        plain.registry = shown.registry = make_registry();
        require_ok(plain.prepare(graph.graph(), "mock:0", weights));
        require_ok(shown.prepare(graph.graph(), "mock:1,mock:0", weights));
        std::vector<NodeId> asked;
        const auto every_seventh = [&](NodeId node) {
            asked.push_back(node);
            return node % 7 == 3;
        };
        auto executable = shown.session->prepare(graph.graph(), shown.tensors, every_seventh);
        REQUIRE_MESSAGE(executable.ok(), executable.status().message());
        shown.executable = *executable;
        CHECK(asked.size() == graph.graph().nodes().size());
        CHECK(std::ranges::is_sorted(asked));
        // Ranges between run as one: no more segments than asked nodes make necessary.
        const size_t observed = shown.executable->schedule().observed().size();
        CHECK(shown.executable->schedule().segments().size() <=
              2 * observed + plain.executable->schedule().segments().size());

        std::vector<NodeId> seen;
        const auto show = [&](NodeId node, NodeOutputs &outputs) -> Status {
            seen.push_back(node);
            CHECK(outputs.count() == graph.graph().nodes()[node].outputs.size());
            std::byte one;
            CHECK(outputs.read(outputs.count(), {&one, 1}).code() == Code::invalid_argument);
            CHECK(outputs.read(0, {&one, 1}, uint64_t{1} << 40).code() == Code::invalid_argument);
            return outputs.read(0, {&one, 1});
        };
        for (ValueId input : graph.graph().inputs())
            require_ok(shown.session->input_write(*shown.executable, input,
                                                  RandomGraph::inputs(1).at(graph.graph().values()[input].name)));
        require_ok(shown.session->run(*shown.executable, show));
        require_ok(plain.run(RandomGraph::inputs(1)));
        CHECK(std::ranges::equal(seen, shown.executable->schedule().observed()));
        CHECK(shown.output(0) == plain.output(0));
    }
}

TEST_CASE("shown runs: a value that is written in between is what all that follows reads") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {8});
    const ValueId twice = b.add(x, x);
    b.output(b.add(twice, x));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    Runner runner;
    require_ok(runner.prepare(*graph, "mock:0,mock:1", {}, {{"add_1|^add.1", "mock:1"}}));
    auto executable = runner.session->prepare(*graph, runner.tensors, [](NodeId) { return true; });
    REQUIRE(executable.ok());
    runner.executable = *executable;
    const std::vector<float> ones(8, 1), tens(8, 10);
    require_ok(runner.session->input_write(**executable, x, std::as_bytes(std::span(ones))));
    require_ok(runner.session->run(**executable, [&](NodeId node, NodeOutputs &outputs) {
        return node == 0 ? outputs.write(0, std::as_bytes(std::span(tens))) : Status();
    }));
    CHECK(runner.output(0) == std::vector<float>(8, 11));
    // A failure of the callback ends the run; the next one is whole.
    int told = 0;
    const Status ended = runner.session->run(**executable, [&](NodeId, NodeOutputs &) {
        return ++told == 1 ? Status(Code::cancelled, "seen enough") : Status();
    });
    CHECK(ended.code() == Code::cancelled);
    CHECK(told == 1);
    require_ok(runner.session->run(**executable));
    CHECK(runner.output(0) == std::vector<float>(8, 3));
}
