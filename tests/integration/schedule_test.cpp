// Placement and split by the rules of the reference: what was decided and why, seen in the schedule.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph_runner.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

/// in -> abs -> linear (W) -> neg -> out
Graph line() {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {2, 8});
    const ValueId y =
        b.linear(b.node(TN_OP_ABS, {x}, {}, "abs"), b.weight("w", DType::f32, {8, 8}), k_no_value, "linear");
    b.output(b.node(TN_OP_NEG, {y}, {}, "neg"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    return *graph;
}

struct Placed {
    std::string device;
    std::string code;
};

std::map<std::string, Placed> placed(const Schedule &schedule) {
    std::map<std::string, Placed> out;
    for (size_t i = 0; i < schedule.nodes().size(); ++i)
        out[schedule.graph().nodes()[i].name] = {schedule.devices()[schedule.nodes()[i].device]->name(),
                                                 std::string(reason_code(schedule.nodes()[i].reason))};
    return out;
}

Data data() {
    return {{"x", random_floats(16, 1)}, {"w", random_floats(64, 2)}};
}

}  // namespace

TEST_CASE("schedule: a weight draws its node, which draws its neighbours") {
    Runner runner;
    const Status status = runner.prepare(line(), "mock:0,cpu", data());
    REQUIRE_MESSAGE(status.ok(), status.message());
    const auto nodes = placed(runner.executable->schedule());
    CHECK(nodes.at("linear").device == "mock:0");
    CHECK(nodes.at("linear").code == "1.wgt");
    CHECK(nodes.at("abs").code == "2.sup");
    CHECK(nodes.at("neg").code == "2.sup");
    // The graph's input lies with the fallback, and is carried over once.
    REQUIRE(runner.executable->schedule().copies().size() == 1);
    CHECK(runner.executable->schedule().copies()[0].bytes == 64);
    CHECK(runner.executable->schedule().segments().size() == 1);
}

TEST_CASE("schedule: a weight that lies on the fallback moves its node up only where the device offers it") {
    for (bool offload : {false, true}) {
        Runner runner;
        const Graph graph = line();
        runner.registry = make_registry();
        auto devices = runner.registry->open(offload ? "mock:0:offload=1,cpu" : "mock:0,cpu");
        REQUIRE(devices.ok());
        auto session = Session::create(runner.registry, *devices, {});
        REQUIRE(session.ok());
        runner.session = *std::move(session);
        const TensorSpec spec{"w", DType::f32, {8, 8}};
        auto weight = allocate_tensors((*devices)[1]->default_buffer_type(), {&spec, 1}, Usage::weights);
        REQUIRE(weight.ok());
        REQUIRE((*weight)[0].set(0, data().at("w")).ok());
        runner.tensors.set("w", (*weight)[0]);
        auto executable = runner.session->prepare(graph, runner.tensors);
        REQUIRE_MESSAGE(executable.ok(), executable.status().message());
        runner.executable = *executable;
        const auto nodes = placed(runner.executable->schedule());
        CHECK(nodes.at("linear").code == (offload ? "1.off" : "1.wgt"));
        CHECK(nodes.at("linear").device.starts_with(offload ? "mock:0" : "cpu"));
        const auto values = data();
        const Status status = runner.run(values);
        REQUIRE_MESSAGE(status.ok(), status.message());
        Runner cpu;
        REQUIRE(cpu.prepare(graph, "cpu", values).ok());
        REQUIRE(cpu.run(values).ok());
        CHECK(nmse(runner.output(0), cpu.output(0)) < 1e-4);
    }
}

TEST_CASE("schedule: states are never carried between devices") {
    GraphBuilder b;
    const ValueId cache = b.state("cache", DType::f32, {8, 2, 4});
    const ValueId after =
        b.kv_append(cache, b.input("new", DType::f32, {1, 2, 4}), b.input("row", DType::i32, {1}), "append");
    b.output(b.node(TN_OP_ABS, {after}, {}, "abs"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    Runner together;
    REQUIRE(together.prepare(*graph, "mock:0,cpu", {}).ok());
    for (const auto &[name, where] : placed(together.executable->schedule())) CHECK(where.device == "mock:0");
    Runner torn;
    const auto pin = Pin::parse("abs=cpu");
    REQUIRE(pin.ok());
    const auto other = Pin::parse("append=mock:0");
    REQUIRE(other.ok());
    const Status status = torn.prepare(*graph, "mock:0,cpu", {}, {*pin, *other});
    REQUIRE(!status.ok());
    CHECK(status.message().find("cache") != std::string::npos);
}

TEST_CASE("schedule: the same graph is placed and planned the same way again") {
    Runner a, b;
    REQUIRE(a.prepare(line(), "mock:0,cpu", data()).ok());
    REQUIRE(b.prepare(line(), "mock:0,cpu", data()).ok());
    CHECK(a.executable->schedule().to_text() == b.executable->schedule().to_text());
}
