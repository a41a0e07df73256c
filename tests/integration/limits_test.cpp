// Sizes at which fixed limits would show: devices, nodes, inputs of one segment, copies, and weights that leave holes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "graph_runner.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

std::string all_devices() {
    std::string list;
    for (int d = 0; d < 64; ++d) list += fmt::format("{}mock:{}", d ? "," : "", d);
    return list;
}

Graph finish(GraphBuilder &&b) {
    auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    return *graph;
}

}  // namespace

TEST_CASE("limits: 100,000 nodes on 64 devices, in 10,000 segments with a copy each, run") {
    constexpr int k_nodes = 100'000, k_stretch = 10;
    GraphBuilder b;
    ValueId x = b.input("x", DType::f32, {2});
    for (int i = 0; i < k_nodes; ++i) {
        b.set_scope(fmt::format("d{}.", i / k_stretch % 64));
        x = i % k_stretch == 0 ? b.affine(x, 1, 1) : b.node(TN_OP_NEG, {x});
    }
    b.output(x);
    const Graph graph = finish(std::move(b));
    std::vector<Pin> pins;
    for (int d = 0; d < 64; ++d) pins.push_back({fmt::format("^d{}\\.", d), fmt::format("mock:{}", d)});
    Runner runner;
    runner.registry = make_registry("64");
    require_ok(runner.prepare(graph, all_devices(), {}, pins, 2));
    const Schedule &schedule = runner.executable->schedule();
    CHECK(schedule.segments().size() == k_nodes / k_stretch);
    CHECK(schedule.copies().size() == k_nodes / k_stretch);
    for (float start : {0.0f, 3.0f}) {
        require_ok(runner.run({{"x", to_bytes<float>({start, -start})}}));
        // Nine changes of sign a stretch: x -> -(x + 1), and after two of them x again.
        const float end = k_nodes / k_stretch % 2 ? -1 : 0;
        CHECK(runner.output(0) == std::vector<float>{start + end, -start + end});
    }
}

TEST_CASE("limits: 1,000 inputs of the graph and 1,000 weights meet in one segment, and all are carried there") {
    constexpr int k_inputs = 1000;
    GraphBuilder b;
    std::vector<ValueId> inputs;
    Data data;
    std::vector<float> want;
    for (int i = 0; i < k_inputs; ++i) {
        inputs.push_back(b.input(fmt::format("x{}", i), DType::f32, {1}));
        data[fmt::format("x{}", i)] = to_bytes<float>({float(i)});
        want.push_back(float(i));
    }
    tn_params_concat along{};
    along.struct_size = TN_SIZE_PARAMS_CONCAT;
    b.output(b.node(TN_OP_CONCAT, inputs, ParamBlob::of(along), "all"));
    const Graph graph = finish(std::move(b));
    Runner runner;
    runner.registry = make_registry("64");
    const auto pin = Pin::parse("all=mock:0");
    REQUIRE(pin.ok());
    require_ok(runner.prepare(graph, "mock:0,mock:1", data, {*pin}, 3));
    CHECK(runner.executable->schedule().segments().size() == 1);
    CHECK(runner.executable->schedule().copies().size() == k_inputs);
    require_ok(runner.run(data));
    CHECK(runner.output(0) == want);
}

TEST_CASE("limits: 10,000 values die between 10,000 that live on, and the holes are used") {
    constexpr int k_values = 20'000;
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {16});
    std::vector<ValueId> values, survivors;
    for (int i = 0; i < k_values; ++i) values.push_back(b.affine(x, 1, float(i % 7)));
    ValueId dying = values[1];  // every other one dies here, far apart from each other
    for (int i = 3; i < k_values; i += 2) dying = b.add(dying, values[size_t(i)]);
    ValueId sum = dying;
    for (int i = 0; i < k_values / 2; ++i) survivors.push_back(b.affine(x, 0, 1));  // in the holes
    for (ValueId late : survivors) sum = b.add(sum, late);
    for (int i = 0; i < k_values; i += 2) sum = b.add(sum, values[size_t(i)]);
    b.output(sum);
    const Graph graph = finish(std::move(b));
    Runner runner;
    require_ok(runner.prepare(graph, "mock:0:alignment=64", {}));
    const MemoryArea &arena = runner.executable->schedule().memory()[0].arena;
    CHECK(arena.bytes <= arena.lower_bound_bytes + arena.lower_bound_bytes / 100);
    require_ok(runner.run({{"x", to_bytes<float>(std::vector<float>(16, 0.0f))}}));
    float want = float(k_values / 2);
    for (int i = 0; i < k_values; ++i) want += float(i % 7);
    CHECK(runner.output(0) == std::vector<float>(16, want));
}
