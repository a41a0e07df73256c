// Properties of the whole scheduler: any graph on any devices with any slots gives, bit for bit, what one device gives
// run by run; the mock's hazard checker sees every read. Seeds are fixed, and printed with a failure.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "random_graph.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

using Outputs = std::vector<Bytes>;

Outputs read_all(Runner &runner, Run run) {
    const Graph graph = runner.executable->schedule().graph();
    Outputs outputs;
    for (ValueId id : graph.outputs()) {
        const Value &value = graph.values()[id];
        outputs.emplace_back(size_t(*canonical_bytes(value.type, value.shape.sizes())));
        require_ok(runner.session->read(*runner.executable, run, id, outputs.back()));
    }
    return outputs;
}

/// Runs with other inputs each, as many in flight as there are slots; each run's outputs are read as late as possible.
std::vector<Outputs> run_all(Runner &runner, uint32_t runs, uint32_t seed) {
    const Graph graph = runner.executable->schedule().graph();
    const uint32_t slots = runner.slots;
    std::mt19937 random(seed);
    std::vector<Outputs> outputs;
    std::vector<Run> flying;
    std::vector<Data> inputs(runs);
    std::vector<uint64_t> tokens;
    for (uint32_t i = 0; i < runs; ++i) {
        if (flying.size() == slots) {
            outputs.push_back(read_all(runner, flying.front()));
            flying.erase(flying.begin());
        }
        inputs[i] = RandomGraph::inputs(i);
        for (ValueId input : graph.inputs()) {
            const Bytes &bytes = inputs[i].at(graph.values()[input].name);
            require_ok(random() % 2 ? runner.session->input_borrow(*runner.executable, input, bytes)
                                    : runner.session->input_write(*runner.executable, input, bytes));
        }
        tokens.push_back(runner.registry->new_cancel_token());
        auto run = runner.session->submit(*runner.executable, tokens.back());
        REQUIRE_MESSAGE(run.ok(), run.status().message());
        flying.push_back(*run);
    }
    for (Run run : flying) outputs.push_back(read_all(runner, run));
    require_ok(runner.session->synchronize());
    return outputs;
}

std::vector<Outputs> on_one(const std::shared_ptr<Registry> &registry, const RandomGraph &of, const Data &weights,
                            uint32_t runs) {
    Runner alone;
    alone.registry = registry;
    require_ok(alone.prepare(of.graph(), "mock:0", weights));
    return run_all(alone, runs, 1);
}

std::string mocks(uint32_t count, const std::string &options, uint32_t seed) {
    std::string list;
    for (uint32_t d = 0; d < count; ++d) list += fmt::format("{}mock:{}:seed={}{}", d ? "," : "", d, seed + d, options);
    return list;
}

}  // namespace

TEST_CASE("pipeline: any graph on any devices with any slots gives what one device gives, bit for bit") {
    const auto registry = make_registry("64");
    struct Case {
        uint32_t nodes, devices, slots, stretch, runs;
        const char *options;
    };
    const Case cases[] = {
        {30, 1, 3, 5, 6, ":fuse=random:hazards=1"},
        {40, 2, 1, 4, 4, ":fuse=random:hazards=1:delay_us=30"},
        {40, 2, 2, 4, 6, ":fuse=random:hazards=1:delay_us=100"},
        {60, 3, 4, 3, 10, ":fuse=random:hazards=1:delay_us=60"},
        {60, 3, 8, 6, 20, ":hazards=1:peer=1:delay_us=30"},
        {120, 5, 3, 10, 8, ":fuse=random:hazards=1:peer=1"},
        {120, 8, 4, 2, 9, ":fuse=random:hazards=1:max_buffer_bytes=8192:alignment=64"},
        {200, 16, 8, 5, 17, ":fuse=random:hazards=1:delay_us=10"},
        {300, 64, 4, 3, 9, ":fuse=random:hazards=1"},
    };
    uint32_t seed = 0;
    for (const Case &one : cases)
        for (int round = 0; round < 4; ++round) {
            ++seed;
            CAPTURE(seed);
            CAPTURE(one.devices);
            CAPTURE(one.slots);
            CAPTURE(one.options);
            RandomGraph graph(seed, one.nodes);
            const Data weights = graph.weights(seed);
            const GraphHash hash = graph.graph().hash();
            const std::string text = to_text(graph.graph());
            const auto want = on_one(registry, graph, weights, one.runs);
            Runner runner;
            runner.registry = registry;
            // Every other round leaves some stretches to the scheduler.
            auto pins = graph.pins("mock", one.devices, one.stretch, round % 2 ? 40 : 0);
            require_ok(runner.prepare(graph.graph(), mocks(one.devices, one.options, seed * 100), weights,
                                      std::move(pins), one.slots));
            const auto got = run_all(runner, one.runs, seed);
            REQUIRE(got.size() == want.size());
            for (size_t run = 0; run < got.size(); ++run)
                for (size_t i = 0; i < got[run].size(); ++i) {
                    CAPTURE(run);
                    CAPTURE(i);
                    CHECK(got[run][i] == want[run][i]);
                }
            CHECK(graph.graph().hash() == hash);
            CHECK(to_text(graph.graph()) == text);
        }
}

TEST_CASE("pipeline: graphs of one session take turns with runs in flight, on the same arenas") {
    const auto registry = make_registry("64");
    for (uint32_t seed = 100; seed < 106; ++seed) {
        CAPTURE(seed);
        RandomGraph first(seed, 40), second(seed + 1000, 80);
        const Data weights[] = {first.weights(seed), second.weights(seed + 7)};
        const Graph graphs[] = {first.graph(), second.graph()};
        const auto want = std::vector{on_one(registry, first, weights[0], 6), on_one(registry, second, weights[1], 6)};
        Runner runners[2];
        auto devices = registry->open(mocks(3, ":fuse=random:delay_us=50:hazards=0", seed));
        REQUIRE(devices.ok());
        SessionOptions options;
        options.slots = 3;
        auto session = Session::create(registry, *devices, std::move(options));
        REQUIRE(session.ok());
        for (int g : {0, 1}) {
            const auto homes = (*session)->place_tensors(graphs[g]);
            REQUIRE(homes.ok());
            for (const TensorHome &home : *homes) {
                const Value &value = graphs[g].values()[home.value];
                const TensorSpec spec{value.name, value.type, value.shape};
                auto made = allocate_tensors(home.buffer_type, {&spec, 1}, Usage::any);
                REQUIRE(made.ok());
                const auto found = weights[g].find(value.name);
                require_ok(found == weights[g].end() ? (*made)[0].clear() : (*made)[0].set(0, found->second));
                runners[g].tensors.set(value.name, (*made)[0]);
            }
            auto executable = (*session)->prepare(graphs[g], runners[g].tensors);
            REQUIRE_MESSAGE(executable.ok(), executable.status().message());
            runners[g].executable = *executable;
        }
        std::vector<std::pair<int, Run>> submitted;
        Runner reader;
        reader.session = *std::move(session);
        uint32_t next[2] = {0, 0};
        std::mt19937 random(seed);
        std::vector<std::tuple<int, uint32_t, Run>> flying;
        auto take = [&] {
            const auto [g, index, run] = flying.front();
            flying.erase(flying.begin());
            reader.executable = runners[g].executable;
            CHECK(read_all(reader, run) == want[g][index]);
        };
        while (next[0] < 6 || next[1] < 6) {
            const int g = next[0] == 6 ? 1 : next[1] == 6 ? 0 : int(random() % 2);
            if (flying.size() == 3) take();
            const Data inputs = RandomGraph::inputs(next[g]);
            for (ValueId input : graphs[g].inputs())
                require_ok(reader.session->input_write(*runners[g].executable, input,
                                                       inputs.at(graphs[g].values()[input].name)));
            auto run = reader.session->submit(*runners[g].executable);
            REQUIRE_MESSAGE(run.ok(), run.status().message());
            flying.emplace_back(g, next[g]++, *run);
        }
        while (!flying.empty()) take();
    }
}

TEST_CASE("pipeline: an output is read of the last runs only, and an input that isn't written keeps its value") {
    const auto registry = make_registry("64");
    RandomGraph graph(7, 40);
    const Data weights = graph.weights(7);
    Runner runner;
    runner.registry = registry;
    require_ok(runner.prepare(graph.graph(), mocks(2, "", 1), weights, graph.pins("mock", 2, 4, 0), 3));
    const Graph &of = graph.graph();
    const Data inputs = RandomGraph::inputs(1);
    CHECK(runner.session->submit(*runner.executable).status().code() == Code::invalid_state);  // nothing written
    std::vector<Run> runs;
    for (int i = 0; i < 5; ++i) {
        if (i == 0)
            for (ValueId input : of.inputs())
                require_ok(runner.session->input_write(*runner.executable, input, inputs.at(of.values()[input].name)));
        auto run = runner.session->submit(*runner.executable);
        REQUIRE_MESSAGE(run.ok(), run.status().message());
        runs.push_back(*run);
    }
    Bytes bytes(
        size_t(*canonical_bytes(of.values()[of.outputs()[0]].type, of.values()[of.outputs()[0]].shape.sizes())));
    CHECK(runner.session->read(*runner.executable, runs[0], of.outputs()[0], bytes).code() == Code::invalid_argument);
    CHECK(runner.session->read(*runner.executable, Run{}, of.outputs()[0], bytes).code() == Code::invalid_argument);
    CHECK(runner.session->wait(Run{100}).code() == Code::invalid_argument);
    Runner alone;
    alone.registry = registry;
    require_ok(alone.prepare(of, "mock:0", weights));
    for (int i = 0; i < 5; ++i) {
        require_ok(alone.run(inputs));
        if (i < 2) continue;
        const Outputs want = read_all(alone, Run{uint64_t(i + 1)}), got = read_all(runner, runs[size_t(i)]);
        CHECK(got == want);
    }
}

TEST_CASE("pipeline: independent segments on different devices overlap within a run") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {8});
    const ValueId left = b.node(TN_OP_NEG, {x}, {}, "left"), right = b.node(TN_OP_ABS, {x}, {}, "right");
    b.output(b.add(left, right, "join"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    const Data data{{"x", to_bytes<float>({1, -2, 3, -4, 5, -6, 7, -8})}};
    // Each of the two waits in its run until the other is running too.
    for (bool can_overlap : {true, false}) {
        CAPTURE(can_overlap);
        Runner runner;
        runner.registry = make_registry("64");
        const std::vector<Pin> pins{{"left", "mock:0"}, {can_overlap ? "right" : "x", "mock:1"}, {".", "mock:2"}};
        const std::string meets = can_overlap ? ":meet=2" : ":meet=2:meet_ms=50";
        require_ok(runner.prepare(*graph, "mock:0" + meets + ",mock:1" + meets + ",mock:2", data, pins));
        const Status status = runner.run(data);
        if (can_overlap) {
            require_ok(status);
            CHECK(runner.output(0) == std::vector<float>{0, 4, 0, 8, 0, 12, 0, 16});
        } else {
            CHECK(status.message().find("nobody came") != std::string::npos);
        }
    }
}

TEST_CASE("pipeline: with two slots a device works on the next run while another finishes the last one") {
    GraphBuilder b;
    const ValueId first = b.node(TN_OP_NEG, {b.input("x", DType::f32, {2})}, {}, "first");
    b.output(b.node(TN_OP_ABS, {first}, {}, "second"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    for (uint32_t slots : {2u, 1u}) {
        CAPTURE(slots);
        Runner runner;
        runner.registry = make_registry("64");
        // Run i + 1 of the first device meets run i of the second: six runs have five such pairs.
        const std::string wait = slots == 1 ? ":meet_ms=50" : "";
        require_ok(runner.prepare(*graph, "mock:0:meet=2:meet_first=1" + wait + ",mock:1:meet=2:meet_runs=5" + wait, {},
                                  {{"first", "mock:0"}, {"second", "mock:1"}}, slots));
        Status status;
        for (int run = 0; run < 6 && status.ok(); ++run) {
            status = runner.session->input_write(*runner.executable, graph->inputs()[0],
                                                 to_bytes<float>({float(run), float(-run)}));
            if (status.ok()) status = runner.session->submit(*runner.executable).status();
        }
        if (status.ok()) status = runner.session->synchronize();
        if (slots == 1) {
            CHECK(status.message().find("nobody came") != std::string::npos);
            continue;
        }
        require_ok(status);
        CHECK(runner.output(0) == std::vector<float>{5, 5});
    }
}
