// Tensors in groups share devices by the memory that these have free.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "graph_runner.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

constexpr int64_t k_width = 64, k_layers = 10;
constexpr uint64_t k_layer_bytes = k_width * k_width * sizeof(float);

/// x through ten weights of 16 KiB.
Graph chain() {
    GraphBuilder b;
    b.set_precision(Precision::exact);
    ValueId x = b.input("x", DType::f32, {2, k_width});
    for (int layer = 0; layer < k_layers; ++layer)
        x = b.linear(x, b.weight(fmt::format("w{}", layer), DType::f32, {k_width, k_width}), k_no_value,
                     fmt::format("layer{}", layer));
    b.output(x);
    auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    return *graph;
}

Offload by_layer(const Graph &graph) {
    Offload offload;
    offload.group_of.assign(graph.values().size(), 0);
    for (int layer = 0; layer < k_layers; ++layer)
        offload.group_of[graph.find(fmt::format("w{}", layer))] = uint32_t(layer);
    return offload;
}

std::vector<uint32_t> devices_of(const Result<std::vector<TensorHome>> &homes) {
    REQUIRE_MESSAGE(homes.ok(), homes.status().message());
    std::vector<uint32_t> devices;
    for (const TensorHome &home : *homes) devices.push_back(home.device);
    return devices;
}

}  // namespace

TEST_CASE("offload: a number of groups, from the last one") {
    const Graph graph = chain();
    const auto session = session_on(make_registry(), "mock:0,mock:1");
    for (uint32_t count = 0; count < 13; ++count) {
        Offload offload = by_layer(graph);
        offload.last_groups = count;
        std::vector<uint32_t> expected(k_layers, 1);
        for (uint32_t i = 0; i < std::min<uint32_t>(count, k_layers); ++i) expected[k_layers - 1 - i] = 0;
        CHECK(devices_of(session->place_tensors(graph, offload)) == expected);
    }
}

TEST_CASE("offload: devices are filled in order, and what was placed can be allocated and run") {
    const Graph graph = chain();
    Data weights;
    for (int layer = 0; layer < k_layers; ++layer)
        weights[fmt::format("w{}", layer)] = random_floats(k_width * k_width, uint32_t(layer), 0.1f);
    const Data inputs{{"x", random_floats(2 * k_width, 99)}};
    Runner alone;
    require_ok(alone.prepare(graph, "cpu:isa=reference", weights));
    require_ok(alone.run(inputs));
    // Room for k layers and some of the rest: never more than there is, and no layer less than would fit.
    for (uint64_t layers = 0; layers < k_layers + 2; ++layers)
        for (uint64_t more : {uint64_t(64), k_layer_bytes / 2, k_layer_bytes - 64}) {
            const uint64_t bytes = layers * k_layer_bytes + more;
            CAPTURE(bytes);
            Runner runner;
            runner.registry = make_registry();
            runner.session =
                session_on(runner.registry, fmt::format("mock:0:memory_bytes={},cpu:isa=reference", bytes));
            Offload offload = by_layer(graph);
            offload.graphs = {&graph, 1};
            const auto homes = runner.session->place_tensors(graph, offload);
            const auto on_mock = std::ranges::count(devices_of(homes), 0u);
            CHECK(std::ranges::is_sorted(devices_of(homes), std::greater()));
            const auto memory = runner.session->measure(graph, *homes);
            REQUIRE(memory.ok());
            CHECK(uint64_t(on_mock) * k_layer_bytes + (*memory)[0].bytes() <= bytes);
            CHECK(uint64_t(on_mock) + 1 >=
                  std::min<uint64_t>(layers, k_layers) - (layers * k_layer_bytes / 32 > k_layer_bytes));
            auto tensors = load_tensors(graph, *homes, weights);
            REQUIRE_MESSAGE(tensors.ok(), tensors.status().message());
            runner.tensors = *tensors;
            auto executable = runner.session->prepare(graph, runner.tensors);
            REQUIRE_MESSAGE(executable.ok(), executable.status().message());
            runner.executable = *executable;
            require_ok(runner.run(inputs));
            CHECK(nmse(runner.output(0), alone.output(0)) < 1e-9);
        }
}

TEST_CASE("offload: several devices share, one after the other") {
    const Graph graph = chain();
    const uint64_t three = 3 * k_layer_bytes + k_layer_bytes / 2;
    const auto session =
        session_on(make_registry(), fmt::format("mock:0:memory_bytes={0},mock:1:memory_bytes={0},cpu", three));
    CHECK(devices_of(session->place_tensors(graph, by_layer(graph))) ==
          std::vector<uint32_t>{2, 2, 2, 2, 1, 1, 1, 0, 0, 0});
    Offload five = by_layer(graph);
    five.last_groups = 5;
    CHECK(devices_of(session->place_tensors(graph, five)) == std::vector<uint32_t>{2, 2, 2, 2, 2, 1, 1, 0, 0, 0});
    five.last_groups = 7;
    const auto refused = session->place_tensors(graph, five);
    CHECK(refused.status().code() == Code::out_of_memory);
    for (const char *part : {"mock:0", "mock:1", "16384"}) {
        CAPTURE(part);
        CHECK(std::string(refused.status().message()).find(part) != std::string::npos);
    }
}

TEST_CASE("offload: pins are kept, and a wrong list of groups is an answer") {
    const Graph graph = chain();
    const auto session = session_on(make_registry(), "mock:0,mock:1", {{"layer[89]", "mock:1"}});
    CHECK(devices_of(session->place_tensors(graph, by_layer(graph))) ==
          std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1});
    CHECK(session->place_tensors(graph, Offload{}).status().code() == Code::invalid_argument);
    // Groups are compared, not counted up to.
    Offload far = by_layer(graph);
    for (uint32_t &group : far.group_of) group += k_no_value - uint32_t(k_layers) + 1;
    CHECK(devices_of(session->place_tensors(graph, far)) == std::vector<uint32_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1});
}

TEST_CASE("expands: says what holds where the tensors lie, not where they could lie") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {2, k_width});
    b.output(b.rms_norm(x, b.weight("w", DType::f32, {k_width}), 1e-5f));
    const auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    const auto session = session_on(make_registry(), "mock:0,cpu:isa=reference");
    for (uint32_t count : {0u, 1u}) {
        Offload offload;
        offload.group_of.assign(graph->values().size(), 0);
        offload.last_groups = count;
        const auto homes = session->place_tensors(*graph, offload);
        REQUIRE_MESSAGE(homes.ok(), homes.status().message());
        const auto expands = session->expands(*graph, *homes, "rms_norm");
        REQUIRE_MESSAGE(expands.ok(), expands.status().message());
        CHECK(*expands == (count > 0));  // the mock knows primitives only
    }
    CHECK(session->expands(*graph, {}, "rms_norm").status().code() == Code::invalid_argument);
}
