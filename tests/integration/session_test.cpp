// The scheduler on several devices: the same numbers as one device gives, failures that leave everything usable.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "graph_runner.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

constexpr int64_t k_width = 64;

/// Residual blocks with norms, products and gates, as language models have them.
Graph blocks(int count, int64_t tokens = 5) {
    GraphBuilder b;
    b.set_precision(Precision::exact);
    ValueId x = b.input("x", DType::f32, {tokens, k_width});
    for (int i = 0; i < count; ++i) {
        b.set_scope(fmt::format("blk.{}.", i));
        auto weight = [&](const char *name, Shape shape) {
            return b.weight(fmt::format("{}.{}", name, i), DType::f32, shape);
        };
        const ValueId norm = b.rms_norm(x, weight("norm", {k_width}), 1e-5f, "norm");
        const ValueId gate = b.linear(norm, weight("gate", {2 * k_width, k_width}), k_no_value, "gate");
        const ValueId up = b.linear(norm, weight("up", {2 * k_width, k_width}), k_no_value, "up");
        const ValueId down =
            b.linear(b.swiglu(gate, up, "act"), weight("down", {k_width, 2 * k_width}), k_no_value, "down");
        x = b.add(x, down, "residual");
    }
    b.output(x);
    auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    return *graph;
}

Data data_for(const Graph &graph) {
    Data data;
    uint32_t seed = 100;
    for (const Value &value : graph.values())
        if (value.flags & (TN_VALUE_INPUT | TN_VALUE_WEIGHT))
            data[value.name] = random_floats(size_t(*value.shape.elements()), ++seed, 0.1f);
    return data;
}

std::vector<Pin> pins(std::initializer_list<const char *> texts) {
    std::vector<Pin> out;
    for (const char *text : texts) {
        auto pin = Pin::parse(text);
        REQUIRE(pin.ok());
        out.push_back(*pin);
    }
    return out;
}

std::vector<float> on_cpu(const Graph &graph, const Data &data) {
    Runner cpu;
    require_ok(cpu.prepare(graph, "cpu:isa=reference", data));
    require_ok(cpu.run(data));
    return cpu.output(0);
}

}  // namespace

TEST_CASE("session: any split over devices gives what one device gives") {
    const Graph graph = blocks(4);
    const Data data = data_for(graph);
    const auto want = on_cpu(graph, data);
    struct Case {
        const char *devices;
        std::vector<Pin> pins;
    };
    const Case cases[] = {
        {"mock:0,cpu", {}},
        {"mock:0:delay_us=300,mock:1:delay_us=300,cpu", pins({"blk\\.0=mock:0", "blk\\.1=mock:1", "blk\\.2=cpu"})},
        {"mock:0:delay_us=200,cpu", pins({"blk\\.[02]=cpu"})},
        {"mock:0:ops=linear,cpu", {}},                      // ping-pong: norms and gates stay behind
        {"mock:0:ops=add+mul+linear+silu:fuse=1,cpu", {}},  // a formula of which a part is missing stays behind whole
        {"mock:0:fuse=1:composites=1,cpu", {}},             // fused groups: unstored values, scratch, in-place offers
        {"cpu:isa=reference,mock:0", pins({"down=mock:0"})},
        {"mock:0:delay_us=200,mock:1:delay_us=200", pins({"gate=mock:1", "residual=mock:1"})},  // no CPU at all
    };
    for (const Case &one : cases) {
        CAPTURE(one.devices);
        Runner runner;
        require_ok(runner.prepare(graph, one.devices, data, one.pins));
        for (int round = 0; round < 3; ++round) {
            require_ok(runner.run(data));
            CHECK(nmse(runner.output(0), want) < 1e-10);
        }
        const auto nodes = runner.executable->schedule().nodes();
        for (size_t i = 0; i < nodes.size(); ++i) CHECK(nodes[i].reason != Reason::none);
    }
}

TEST_CASE("session: a pin is kept, and one that can't be kept is an error") {
    const Graph graph = blocks(2);
    const Data data = data_for(graph);
    Runner kept;
    require_ok(kept.prepare(graph, "mock:0,cpu", data, pins({"blk\\.1\\.down=cpu"})));
    const Schedule &schedule = kept.executable->schedule();
    for (size_t i = 0; i < schedule.nodes().size(); ++i)
        if (graph.nodes()[i].name == "blk.1.down") {
            CHECK(schedule.devices()[schedule.nodes()[i].device]->name().starts_with("cpu"));
            CHECK(schedule.nodes()[i].reason == Reason::usr);
        }
    Runner impossible;
    const Status status = impossible.prepare(graph, "mock:0:ops=add,cpu", data, pins({"blk\\.1\\.down=mock:0"}));
    CHECK(!status.ok());
    CHECK(status.message().find("down") != std::string::npos);
    CHECK(status.message().find("mock:0") != std::string::npos);
    Runner unknown;
    CHECK(unknown.prepare(graph, "cpu", data, pins({"x=nowhere"})).code() == Code::not_found);
    CHECK(!Pin::parse("no device").ok());
    CHECK(!Pin::parse("(=cpu").ok());
}

TEST_CASE("session: a node that nobody supports is named with every device's reason") {
    const Graph graph = blocks(1);
    Runner runner;
    const Status status = runner.prepare(graph, "mock:0:ops=add,mock:1:ops=mul", data_for(graph));
    REQUIRE(status.code() == Code::unsupported);
    CHECK(status.message().find("mock:0") != std::string::npos);
    CHECK(status.message().find("mock:1") != std::string::npos);
}

TEST_CASE("session: a failing segment leaves nothing in flight and the session usable") {
    const Graph graph = blocks(3);
    const Data data = data_for(graph);
    const auto want = on_cpu(graph, data);
    Runner runner;
    require_ok(runner.prepare(graph, "mock:0:delay_us=200,cpu", data, pins({"blk\\.1=cpu"})));
    auto mock = runner.session->devices()[0];
    for (int at : {1, 2}) {
        require_ok(mock->set_option("fail_run", std::to_string(at)));
        const Status status = runner.run(data);
        CHECK(!status.ok());
        CHECK(status.message().find("mock:0") != std::string::npos);
        require_ok(runner.run(data));
        CHECK(nmse(runner.output(0), want) < 1e-10);
    }
}

TEST_CASE("session: out of memory is a status, and smaller graphs still run") {
    const Graph small = blocks(1);
    const Data data = data_for(small);
    auto registry = make_registry();
    auto devices = registry->open("mock:0:memory_mb=1,cpu");
    REQUIRE(devices.ok());
    Runner runner;
    runner.registry = registry;
    auto session = Session::create(registry, *devices, {});
    REQUIRE(session.ok());
    runner.session = *std::move(session);
    require_ok(runner.load(small, data));
    const auto kept = runner.executable;

    const Graph large = blocks(1, 20000);  // 5 MB a value
    auto homes = runner.session->place_tensors(large);
    REQUIRE(homes.ok());
    auto measured = runner.session->measure(large, *homes);
    REQUIRE_MESSAGE(measured.ok(), measured.status().message());
    CHECK((*measured)[0].arena.bytes > (1u << 20));
    auto failed = runner.session->prepare(large, runner.tensors);
    REQUIRE(!failed.ok());
    CHECK(failed.status().code() == Code::out_of_memory);
    require_ok(runner.run(data));
    CHECK(nmse(runner.output(0), on_cpu(small, data)) < 1e-10);
}

TEST_CASE("session: graphs of several sizes share weights and the arena, in any order") {
    auto registry = make_registry();
    auto devices = registry->open("mock:0,cpu:isa=reference");
    REQUIRE(devices.ok());
    auto session = Session::create(registry, *devices, {});
    REQUIRE(session.ok());
    Runner runner;
    runner.registry = registry;
    runner.session = *std::move(session);
    std::vector<std::shared_ptr<Executable>> executables;
    std::vector<std::vector<float>> wants;
    std::vector<Data> inputs;
    const Data weights = data_for(blocks(2));
    for (int64_t tokens : {1, 40, 7}) {
        const Graph graph = blocks(2, tokens);
        if (executables.empty()) require_ok(runner.load(graph, weights));
        auto executable = runner.session->prepare(graph, runner.tensors);
        REQUIRE_MESSAGE(executable.ok(), executable.status().message());
        executables.push_back(*executable);
        Data data = weights;
        data["x"] = random_floats(size_t(tokens * k_width), uint32_t(tokens));
        wants.push_back(on_cpu(graph, data));
        inputs.push_back(data);
    }
    for (size_t i : {0, 1, 2, 1, 0, 2}) {
        runner.executable = executables[i];
        require_ok(runner.run(inputs[i]));
        CHECK(nmse(runner.output(0), wants[i]) < 1e-10);
    }
    const SessionCounters before = runner.session->counters();
    for (size_t i : {0, 1, 2}) {
        runner.executable = executables[i];
        require_ok(runner.run(inputs[i]));
    }
    const SessionCounters after = runner.session->counters();
    CHECK(after.plans == before.plans);
    CHECK(after.buffers == before.buffers);
    CHECK(after.binds == before.binds);
}

TEST_CASE("session: a raised token ends the run as cancelled, a cleared one doesn't") {
    const Graph graph = blocks(4);
    const Data data = data_for(graph);
    Runner runner;
    require_ok(runner.prepare(graph, "cpu:isa=reference", data));
    const uint64_t token = runner.registry->new_cancel_token();
    runner.registry->raise_cancel(token);
    CHECK(runner.run(data, token).code() == Code::cancelled);
    runner.registry->clear_cancel(token);
    require_ok(runner.run(data, token));
    CHECK(nmse(runner.output(0), on_cpu(graph, data)) < 1e-12);
}

TEST_CASE("session: wrong names, sizes and tensors are answers") {
    const Graph graph = blocks(1);
    const Data data = data_for(graph);
    Runner runner;
    require_ok(runner.prepare(graph, "cpu", data));
    const Bytes one(1);
    CHECK(!runner.session->input_write(*runner.executable, graph.inputs()[0], one).ok());
    CHECK(!runner.session->input_write(*runner.executable, graph.outputs()[0], one).ok());
    CHECK(!runner.session->input_write(*runner.executable, 100000, one).ok());
    Bytes large(1 << 20);
    CHECK(!runner.session->read(*runner.executable, graph.outputs()[0], large).ok());
    CHECK(!runner.session->read(*runner.executable, graph.inputs()[0], {}).ok());
    TensorMap none;
    CHECK(!runner.session->prepare(graph, none).ok());
    TensorMap wrong = runner.tensors;
    wrong.set("norm.0", *wrong.find("gate.0"));
    const auto refused = runner.session->prepare(graph, wrong);
    REQUIRE(!refused.ok());
    CHECK(refused.status().message().find("norm.0") != std::string::npos);
    CHECK(!Session::create(runner.registry, {}, {}).ok());
    CHECK(!Session::create(runner.registry, {nullptr}, {}).ok());
    CHECK(!Tensor::in_buffer(nullptr, 0, {"t", DType::f32, {1}}).ok());
}

TEST_CASE("session: an option that changes a device has its graphs prepared anew when inputs are next written") {
    const Graph graph = blocks(2);
    const Data data = data_for(graph);
    Runner runner;
    require_ok(runner.prepare(graph, "cpu:threads=1", data));
    require_ok(runner.run(data));
    const auto want = runner.output(0);
    const uint64_t plans = runner.session->counters().plans;
    require_ok(runner.session->devices()[0]->set_option("threads", "2"));
    CHECK(runner.session->run(*runner.executable).code() == Code::invalid_state);
    require_ok(runner.run(data));
    CHECK(runner.session->counters().plans > plans);
    CHECK(runner.output(0) == want);  // results don't depend on threads
}

TEST_CASE("session: what changes a value in place goes where the value lies") {
    GraphBuilder b;
    const ValueId table = b.node(TN_OP_ABS, {b.input("x", DType::f32, {4, 8})}, {}, "made");
    const ValueId after =
        b.node(TN_OP_SCATTER_ROWS, {table, b.input("rows", DType::f32, {1, 8}), b.input("ids", DType::i32, {1})}, {},
               "scatter");
    b.output(b.node(TN_OP_NEG, {after}, {}, "neg"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    const Data data = {{"x", random_floats(32, 1)}, {"rows", random_floats(8, 2)}, {"ids", to_bytes<int32_t>({2})}};
    const auto want = on_cpu(*graph, data);
    Runner runner;
    require_ok(runner.prepare(*graph, "mock:0,cpu", data, pins({"made=mock:0", "neg=cpu"})));
    for (size_t i = 0; i < graph->nodes().size(); ++i)
        if (graph->nodes()[i].name == "scatter") CHECK(runner.executable->schedule().nodes()[i].device == 0);
    require_ok(runner.run(data));
    CHECK(nmse(runner.output(0), want) < 1e-10);
}

TEST_CASE("session: an output that is a view is read in order, also with sizes of 1") {
    GraphBuilder b;
    const ValueId y = b.node(TN_OP_NEG, {b.input("x", DType::f32, {1, 6})});
    b.output(b.slice(y, 1, 2, 3));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    const Data data = {{"x", to_bytes<float>({1, 2, 3, 4, 5, 6})}};
    Runner runner;
    require_ok(runner.prepare(*graph, "cpu", data));
    require_ok(runner.run(data));
    CHECK(runner.output(0) == std::vector<float>{-3, -4, -5});
    GraphBuilder strided;
    strided.output(strided.slice(strided.node(TN_OP_NEG, {strided.input("x", DType::f32, {1, 6})}), 1, 0, 3, 2));
    auto refused = std::move(strided).finish();
    REQUIRE(refused.ok());
    CHECK(!runner.session->prepare(*refused, {}).ok());
}

TEST_CASE("session: empty tensors are legal and do nothing, on one device and split over two") {
    for (const char *devices : {"cpu", "mock:0", "mock:0:ops=add+linear,cpu", "mock:0:ops=softmax,cpu"}) {
        CAPTURE(devices);
        GraphBuilder b;
        b.set_precision(Precision::exact);
        const ValueId x = b.input("x", DType::f32, {0, 3}), narrow = b.input("narrow", DType::f32, {2, 0});
        const ValueId y =
            b.add(b.linear(x, b.weight("w", DType::f32, {5, 3}), k_no_value), b.input("bias", DType::f32, {5}));
        b.output(b.node(TN_OP_NEG, {y}));
        b.output(b.linear(narrow, b.weight("w0", DType::f32, {4, 0}), k_no_value));
        auto graph = std::move(b).finish();
        REQUIRE_MESSAGE(graph.ok(), graph.status().message());
        const Data data = {
            {"x", {}}, {"narrow", {}}, {"bias", random_floats(5, 1)}, {"w", random_floats(15, 2)}, {"w0", {}}};
        Runner runner;
        require_ok(runner.prepare(*graph, devices, data));
        require_ok(runner.run(data));
        CHECK(runner.output(0).empty());
        CHECK(runner.output(1) == std::vector<float>(8, 0.0f));  // a sum of nothing
    }
}
