// The mock device does what its options say: what the scheduler's tests rest on. Segments are placed by hand here, so
// that wrong plans can be told from right ones.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <set>

#include "segment_bench.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

void check_says(const Status &status, Code code, std::initializer_list<const char *> texts) {
    CHECK(status.code() == code);
    CAPTURE(status.message());
    for (const char *text : texts) CHECK(status.message().find(text) != std::string::npos);
}

/// y = neg(x), both [8].
struct Line {
    SegmentGraph graph;
    uint32_t x = graph.value("x", {8}, TN_VALUE_INPUT), y = graph.value("y", {8}, TN_VALUE_OBSERVED);
    std::vector<uint64_t> places{0, 256};
    Line() { graph.node(TN_OP_NEG, {x}, {y}); }
};

const std::vector<float> k_numbers{1, -2, 3, -4, 5, -6, 7, -8};

/// Residual blocks: norm, two products, a gate, a product, the sum; the stream of sums is read again and again.
Graph residual_blocks(int count, int64_t width = 16, int64_t tokens = 3) {
    GraphBuilder b;
    b.set_precision(Precision::exact);
    ValueId x = b.input("x", DType::f32, {tokens, width});
    const ValueId cache = b.state("cache", DType::f32, {4, 1, width});
    const ValueId row = b.input("row", DType::i32, {1});
    for (int i = 0; i < count; ++i) {
        b.set_scope(fmt::format("blk.{}.", i));
        auto weight = [&](const char *name, Shape shape) {
            return b.weight(fmt::format("{}.{}", name, i), DType::f32, shape);
        };
        const ValueId norm = b.rms_norm(x, weight("norm", {width}), 1e-5f, "norm");
        const ValueId gate = b.linear(norm, weight("gate", {2 * width, width}), k_no_value, "gate");
        const ValueId up = b.linear(norm, weight("up", {2 * width, width}), k_no_value, "up");
        const ValueId down =
            b.linear(b.swiglu(gate, up, "act"), weight("down", {width, 2 * width}), k_no_value, "down");
        x = b.add(x, b.affine(down, 0.5f, 0.25f, "scaled"), "residual");
    }
    b.set_scope("");
    const ValueId last = b.reshape(b.slice(x, 0, tokens - 1, 1), {1, 1, width});
    b.output(b.node(TN_OP_ABS, {b.kv_append(cache, last, row, "append")}, {}, "kept"));
    b.output(x);
    return got(std::move(b).finish());
}

Data data_for(const Graph &graph) {
    Data data;
    uint32_t seed = 100;
    for (const Value &value : graph.values())
        if (value.flags & (TN_VALUE_INPUT | TN_VALUE_WEIGHT) && value.type == DType::f32 && value.view_of == k_no_value)
            data[value.name] = random_floats(size_t(*value.shape.elements()), ++seed, 0.3f);
    data["row"] = to_bytes<int32_t>({2});
    return data;
}

std::vector<std::vector<float>> outputs_on(const std::string &devices, const Graph &graph, const Data &data,
                                           std::vector<Pin> pins = {}) {
    CAPTURE(devices);
    Runner runner;
    require_ok(runner.prepare(graph, devices, data, std::move(pins)));
    for (int round = 0; round < 2; ++round) require_ok(runner.run(data, runner.registry->new_cancel_token()));
    return {runner.output(0), runner.output(1)};
}

/// A segment of chains that meet: enough to fuse, reuse and leave unstored.
SegmentGraph braid(int length) {
    SegmentGraph graph;
    const uint32_t x = graph.value("x", {4, 8}, TN_VALUE_INPUT);
    const uint32_t w = graph.value("w", {8, 8}, TN_VALUE_WEIGHT);
    uint32_t a = x, b = x;
    for (int i = 0; i < length; ++i) {
        auto made = [&](const char *name, uint32_t flags = 0) {
            return graph.value(fmt::format("{}{}", name, i), {4, 8}, flags);
        };
        const uint32_t m = made("m"), l = made("l"), s = made("s"), n = made("n");
        graph.node(TN_OP_MUL, {a, x}, {m});
        graph.node(TN_OP_LINEAR, {b, w}, {l});
        graph.node(TN_OP_ADD, {m, l}, {s});
        graph.node(TN_OP_TANH, {s}, {n});
        a = n, b = s;
    }
    const uint32_t end = graph.value("end", {4, 8}, TN_VALUE_OBSERVED);
    graph.node(TN_OP_ADD, {a, b}, {end});
    return graph;
}

}  // namespace

TEST_CASE("mock: as many devices as the plugin's option says") {
    CHECK(make_registry()->open("mock:1").ok());
    CHECK(make_registry()->open("mock:2").status().code() == Code::not_found);
    const auto many = make_registry("4096");
    CHECK(got(many->open("mock:17,MOCK:4095"))[1]->name() == "mock:4095");
    CHECK(many->open("mock:4096").status().code() == Code::not_found);
    CHECK(!make_registry("0")->open("mock:0").ok());
    CHECK(!make_registry("4097")->open("mock:0").ok());
    Runner runner;
    runner.registry = make_registry("64");
    const Graph graph = residual_blocks(2);
    const Data data = data_for(graph);
    require_ok(runner.prepare(graph, "mock:63,mock:17", data));
    require_ok(runner.run(data));
    CHECK(runner.output(1) == outputs_on("mock:0", graph, data)[1]);
}

TEST_CASE("mock: the n-th call of a kind fails, once, with its status") {
    Bench bench("mock:0");
    const Line line;
    auto plan = bench.ready(line.graph, line.places);
    auto event = got(Event::create(bench.device));
    const tn_value x = Bench::at(line.graph[line.x], 0), y = Bench::at(line.graph[line.y], 256);
    std::vector<float> numbers(8);
    std::unique_ptr<Plan> unplaced;
    auto queued = [&](Status status) { return status.ok() ? bench.stream->synchronize() : status; };
    struct Case {
        const char *option, *text;
        Code code;
        std::function<Status()> call;
    };
    const Case cases[] = {
        {"fail_run", "run", Code::internal, [&] { return bench.run(*plan); }},
        {"fail_alloc", "alloc", Code::out_of_memory,
         [&] { return bench.device->default_buffer_type().alloc(64, Usage::any).status(); }},
        {"fail_prepare", "prepare", Code::out_of_memory,
         [&] { return Plan::prepare(bench.device, line.graph.view()).status(); }},
        {"fail_place", "place", Code::internal, [&] { return bench.place(*bench.prepare(line.graph), line.places); }},
        {"fail_bind", "bind", Code::out_of_memory, [&] { return bench.bind(*plan); }},
        {"fail_init", "init_tensor", Code::out_of_memory, [&] { return bench.buffer->init_tensor(x).status(); }},
        {"fail_set", "set", Code::internal, [&] { return bench.buffer->set(x, 0, k_numbers.data(), 32); }},
        {"fail_set", "set", Code::internal, [&] { return bench.buffer->fill(x, 0, 32, 1); }},
        {"fail_get", "get", Code::internal, [&] { return bench.buffer->get(x, 0, numbers.data(), 32); }},
        {"fail_set", "set", Code::internal,
         [&] { return queued(bench.stream->set(*bench.buffer, x, 0, k_numbers.data(), 32)); }},
        {"fail_get", "get", Code::internal,
         [&] { return queued(bench.stream->get(*bench.buffer, x, 0, numbers.data(), 32)); }},
        {"fail_copy", "copy", Code::internal,
         [&] { return queued(bench.stream->copy(*bench.buffer, y, *bench.buffer, x)); }},
        {"fail_event", "event", Code::out_of_memory, [&] { return queued(event->record(*bench.stream)); }},
    };
    for (const Case &one : cases) {
        CAPTURE(one.option);
        require_ok(bench.device->set_option(one.option, "2"));
        require_ok(one.call());
        CHECK(got(bench.device->get_option(one.option)) == "1");
        check_says(one.call(), one.code, {one.text, "on demand"});
        require_ok(one.call());
    }
    // A place that failed can be given again.
    auto again = bench.prepare(line.graph);
    require_ok(bench.device->set_option("fail_place", "1"));
    CHECK(!bench.place(*again, line.places).ok());
    require_ok(bench.place(*again, line.places));
    require_ok(bench.bind(*again));
    require_ok(bench.set(line.graph[line.x], 0, k_numbers));
    require_ok(bench.run(*again));
    CHECK(bench.get(line.graph[line.y], 256, 8)[1] == 2);
    CHECK(bench.registry->open("mock:1:fail_prepare=-1").status().code() == Code::invalid_argument);
    CHECK(bench.device->set_option("fuse", "1").code() == Code::not_found);
}

TEST_CASE("mock: memory to the byte, buffers of a largest size, any alignment") {
    auto registry = make_registry();
    auto device = got(registry->open("mock:0:memory_bytes=1000:max_buffer_bytes=800:alignment=64"))[0];
    const BufferType type = device->default_buffer_type();
    CHECK(type.alignment() == 64);
    CHECK(type.max_bytes() == 800);
    {
        auto most = got(type.alloc(800, Usage::any));
        check_says(type.alloc(201, Usage::any).status(), Code::out_of_memory, {"mock:0", "201", "200 free"});
        CHECK(type.alloc(200, Usage::any).ok());
    }
    CHECK(!type.alloc(801, Usage::any).ok());
    CHECK(type.alloc(800, Usage::any).ok());
    CHECK(registry->open("mock:1:alignment=48").status().code() == Code::invalid_argument);
    CHECK(registry->open("mock:1:alignment=4").status().code() == Code::invalid_argument);
    const Graph graph = residual_blocks(3);
    const Data data = data_for(graph);
    const auto want = outputs_on("mock:0", graph, data);
    for (int alignment : {8, 16, 4096})
        for (const char *fuse : {"1", "random"})
            CHECK(outputs_on(fmt::format("mock:0:alignment={}:fuse={}", alignment, fuse), graph, data) == want);
}

TEST_CASE("mock: an op that is computed wrongly is wrong in one element of each of its nodes") {
    SegmentGraph graph;
    const uint32_t x = graph.value("x", {8}, TN_VALUE_INPUT), y = graph.value("y", {8}, TN_VALUE_OBSERVED);
    const uint32_t z = graph.value("z", {8}, TN_VALUE_OBSERVED), a = graph.value("a", {8}, TN_VALUE_OBSERVED);
    graph.node(TN_OP_NEG, {x}, {y});
    graph.node(TN_OP_ABS, {x}, {a});
    graph.node(TN_OP_NEG, {x}, {z});
    for (int from = 0; from < 3; ++from) {
        Bench bench(fmt::format("mock:0:wrong=neg:wrong_from={}", from));
        auto plan = bench.ready(graph, {0, 256, 512, 768});
        require_ok(bench.set(graph[x], 0, k_numbers));
        require_ok(bench.run(*plan));
        std::vector<float> right, wrong, positive;
        for (float number : k_numbers) right.push_back(-number), positive.push_back(std::abs(number));
        wrong = right;
        wrong[3] += 1 + std::abs(wrong[3]) / 8;
        CHECK(bench.get(graph[y], 256, 8) == (from == 0 ? wrong : right));
        CHECK(bench.get(graph[z], 512, 8) == (from <= 1 ? wrong : right));
        CHECK(bench.get(graph[a], 768, 8) == positive);
    }
    CHECK(make_registry()->open("mock:0:wrong=nothing").status().code() == Code::invalid_argument);
    // A composite as one node, and a primitive in the formulas of others.
    const Graph blocks = residual_blocks(2);
    const Data data = data_for(blocks);
    const auto want = outputs_on("mock:0:composites=1", blocks, data);
    CHECK(outputs_on("mock:0:composites=1:wrong=rms_norm", blocks, data)[1] != want[1]);
    CHECK(outputs_on("mock:0:composites=1:wrong=rms_norm:wrong_from=2", blocks, data) == want);
    CHECK(outputs_on("mock:0:wrong=mul", blocks, data)[1] != outputs_on("mock:0", blocks, data)[1]);
}

TEST_CASE("mock: random fusing answers within the ABI, the same way for the same seed") {
    const SegmentGraph graph = braid(12);
    size_t fused = 0, unstored = 0, offers = 0, moved = 0;
    std::set<std::vector<uint32_t>> different;
    for (int seed = 0; seed < 60; ++seed) {
        CAPTURE(seed);
        const Bench bench(fmt::format("mock:0:fuse=random:seed={}", seed));
        const auto plan = bench.prepare(graph), again = bench.prepare(graph);  // core and SDK check D34 to D37
        CHECK(plan->node_groups() == again->node_groups());
        CHECK(plan->unstored() == again->unstored());
        CHECK(plan->in_place() == again->in_place());
        CHECK(plan->group_scratch() == again->group_scratch());
        fused += plan->group_scratch().size() < graph.node_count();
        moved += !std::ranges::is_sorted(plan->node_groups());
        unstored += plan->unstored().size(), offers += plan->in_place().size();
        different.insert(plan->node_groups());
    }
    CHECK(different.size() > 50);
    CHECK(fused > 40);
    CHECK(moved > 20);
    CHECK(unstored > 60);
    CHECK(offers > 60);
    CHECK(make_registry()->open("mock:0:fuse=2").status().code() == Code::invalid_argument);
}

TEST_CASE("mock: results don't depend on fusing, bit for bit, and right runs are free of hazards") {
    const Graph graph = residual_blocks(3);
    const Data data = data_for(graph);
    const auto want = outputs_on("mock:0", graph, data);
    CHECK(outputs_on("mock:0:hazards=1", graph, data) == want);
    CHECK(outputs_on("mock:0:hazards=1:fuse=1", graph, data) == want);
    for (int seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        CHECK(outputs_on(fmt::format("mock:0:hazards=1:fuse=random:seed={}", seed), graph, data) == want);
    }
    // Two devices that carry values over, with and without the host between them.
    std::vector<Pin> pins{Pin{"blk\\.1|gate", "mock:1"}};
    for (int seed = 0; seed < 20; ++seed) {
        CAPTURE(seed);
        const std::string options = fmt::format(":hazards=1:fuse=random:delay_us=20:peer={}:seed={}", seed % 2, seed);
        CHECK(outputs_on("mock:0" + options + ",mock:1" + options, graph, data, pins) == want);
    }
}

TEST_CASE("mock: segments of 100,000 nodes are fused in one go") {
    const SegmentGraph graph = braid(25000);
    for (const char *options : {"mock:0", "mock:0:fuse=1", "mock:0:fuse=random", "mock:0:fuse=random:hazards=1"}) {
        CAPTURE(options);
        const Bench bench(options);
        CHECK(bench.prepare(graph)->node_groups().size() == graph.node_count());
    }
}

TEST_CASE("mock: the hazard checker finds a value that was placed over one that is still to be read") {
    SegmentGraph graph;  // x -> a -> b, then a + b
    const uint32_t x = graph.value("x", {8}, TN_VALUE_INPUT), a = graph.value("a", {8}), b = graph.value("b", {8});
    const uint32_t y = graph.value("y", {8}, TN_VALUE_OBSERVED);
    graph.node(TN_OP_NEG, {x}, {a});
    graph.node(TN_OP_ABS, {a}, {b});
    graph.node(TN_OP_ADD, {a, b}, {y});
    auto outcome = [&](const std::vector<uint64_t> &places, const char *options = "mock:0:hazards=1") {
        Bench bench(options);
        auto plan = bench.ready(graph, places);
        require_ok(bench.set(graph[x], 0, k_numbers));
        return bench.run(*plan, bench.registry->new_cancel_token());
    };
    require_ok(outcome({0, 256, 512, 768}));
    require_ok(outcome({0, 256, 512, 0}));  // x is dead by then
    require_ok(outcome({0, 256, 256, 512}, "mock:0"));
    check_says(outcome({0, 256, 256, 512}), Code::internal, {"hazard: node 'b' (abs) reads 'a'", "where 'b", "mock:0"});
    check_says(outcome({0, 256, 272, 512}), Code::internal, {"hazard: node 'b' (abs) reads 'a'", "byte 272"});
    check_says(outcome({0, 256, 512, 528}), Code::internal, {"hazard: node 'y' (add) reads 'b'", "where 'y' lies"});
    check_says(outcome({0, 256, 512, 240}), Code::internal, {"reads 'a'", "where 'y' lies"});
}

TEST_CASE("mock: an in-place offer that was taken is no hazard") {
    SegmentGraph graph;
    const uint32_t x = graph.value("x", {8}, TN_VALUE_INPUT), a = graph.value("a", {8});
    const uint32_t y = graph.value("y", {8}, TN_VALUE_OBSERVED);
    graph.node(TN_OP_ABS, {x}, {a});
    graph.node(TN_OP_NEG, {a}, {y});
    Bench bench("mock:0:hazards=1:fuse=1");
    auto plan = bench.prepare(graph);
    REQUIRE(plan->in_place() == std::vector<std::pair<uint32_t, uint32_t>>{{y, a}});
    require_ok(bench.place(*plan, {0, 256, 256}));
    require_ok(bench.bind(*plan));
    require_ok(bench.set(graph[x], 0, k_numbers));
    require_ok(bench.run(*plan));
    CHECK(bench.get(graph[y], 256, 8)[2] == -3);
}

TEST_CASE("mock: the hazard checker finds what was never written, and works on afterwards") {
    Bench bench("mock:0:hazards=1");
    const Line line;
    auto plan = bench.ready(line.graph, line.places);
    check_says(bench.run(*plan), Code::internal, {"hazard: node 'y' (neg) reads 'x'", "not yet written"});
    require_ok(bench.buffer->set(Bench::at(line.graph[line.x], 0), 0, k_numbers.data(), 28));
    check_says(bench.run(*plan), Code::internal, {"'x' at byte 28", "not yet written"});
    require_ok(bench.set(line.graph[line.y], 0, k_numbers));  // another's name
    check_says(bench.run(*plan), Code::internal, {"reads 'x' at byte 0", "where 'y' lies"});
    require_ok(bench.set(line.graph[line.x], 0, k_numbers));
    require_ok(bench.run(*plan));
    require_ok(bench.buffer->clear(0));  // whoever clears a buffer may mean its values
    require_ok(bench.run(*plan));
    CHECK(bench.get(line.graph[line.x], 0, 8) == std::vector<float>(8));
}

TEST_CASE("mock: the hazard checker respects strides: only the bytes that are read count") {
    SegmentGraph graph;  // the even columns of x [2, 8]
    const uint32_t x = graph.value("x", {2, 8}, TN_VALUE_INPUT), even = graph.view(x, {2, 4}, {32, 8});
    const uint32_t wide = graph.view(x, {4, 1, 8}, {0, 0, 4});  // the first row, four times
    const uint32_t y = graph.value("y", {2, 4}, TN_VALUE_OBSERVED), z = graph.value("z", {4, 1, 8}, TN_VALUE_OBSERVED);
    graph.node(TN_OP_COPY, {even}, {y});
    graph.node(TN_OP_COPY, {wide}, {z});
    Bench bench("mock:0:hazards=1");
    auto plan = bench.ready(graph, {0, 0, 0, 256, 512});
    const std::vector<float> numbers(16, 2);
    require_ok(bench.set(graph[x], 0, numbers));
    require_ok(bench.set(describe(DType::f32, {1}, "other"), 36, {9}));  // column 1 of row 1
    require_ok(bench.run(*plan));
    require_ok(bench.set(describe(DType::f32, {1}, "other"), 40, {9}));  // column 2
    check_says(bench.run(*plan), Code::internal, {"reads 'view of x' at byte 40", "where 'other' lies"});
}

TEST_CASE("mock: the hazard checker finds what an earlier run left behind") {
    SegmentGraph writer, reader;
    const uint32_t x = writer.value("x", {8}, TN_VALUE_INPUT), m = writer.value("m", {8}, TN_VALUE_OBSERVED);
    writer.node(TN_OP_NEG, {x}, {m});
    const uint32_t in = reader.value("m", {8}, TN_VALUE_INPUT), y = reader.value("y", {8}, TN_VALUE_OBSERVED);
    reader.node(TN_OP_ABS, {in}, {y});
    Bench bench("mock:0:hazards=1");
    auto first = bench.ready(writer, {0, 256}), second = bench.ready(reader, {256, 512});
    require_ok(bench.set(writer[x], 0, k_numbers));
    require_ok(bench.run(*first, 1));
    require_ok(bench.run(*second, 1));
    require_ok(bench.run(*second, 0));  // any run
    check_says(bench.run(*second, 2), Code::internal, {"hazard: node 'y' (abs) reads 'm'", "of an earlier run"});
    // A copy on the device is as old as what it copies; what the host brings belongs to every run.
    const tn_value from = Bench::at(reader[in], 256), to = Bench::at(reader[in], 1024);
    require_ok(bench.stream->copy(*bench.buffer, to, *bench.buffer, from));
    require_ok(bench.stream->synchronize());
    auto copied = bench.ready(reader, {1024, 512});
    check_says(bench.run(*copied, 2), Code::internal, {"of an earlier run"});
    require_ok(bench.run(*copied, 1));
    require_ok(bench.run(*first, 3));
    check_says(bench.run(*second, 2), Code::internal, {"of a later run"});
    require_ok(bench.set(reader[in], 256, k_numbers));
    require_ok(bench.run(*second, 2));
}

TEST_CASE("mock: states keep their names through changes in place, and may be read before they are written") {
    SegmentGraph graph;
    const uint32_t state = graph.value("state", {4, 8}, TN_VALUE_STATE),
                   rows = graph.value("rows", {1, 8}, TN_VALUE_INPUT);
    const uint32_t ids = graph.value("ids", {1}, TN_VALUE_INPUT, DType::i32);
    const uint32_t after = graph.view(state, {4, 8}, {32, 4});
    const uint32_t y = graph.value("y", {4, 8}, TN_VALUE_OBSERVED);
    graph.node(TN_OP_SCATTER_ROWS, {state, rows, ids}, {after});
    graph.node(TN_OP_ABS, {after}, {y});
    Bench bench("mock:0:hazards=1");
    auto plan = bench.ready(graph, {0, 256, 512, 0, 1024});
    require_ok(bench.set(graph[rows], 256, k_numbers));
    const int32_t row = 1;
    require_ok(bench.buffer->set(Bench::at(graph[ids], 512), 0, &row, sizeof row));
    for (uint64_t token : {1, 2, 3}) require_ok(bench.run(*plan, token));  // the state is as old as it likes
    CHECK(bench.get(graph[y], 1024, 32)[8 + 3] == 4);
    require_ok(bench.set(graph[rows], 32, k_numbers));
    check_says(bench.run(*plan, 4), Code::internal, {"reads 'state'", "where 'rows' lies"});
}

TEST_CASE("mock: scratch over a value is a hazard") {
    SegmentGraph graph;
    const uint32_t x = graph.value("x", {2, 8}, TN_VALUE_INPUT), w = graph.value("w", {8, 8}, TN_VALUE_WEIGHT);
    const uint32_t y = graph.value("y", {2, 8}, TN_VALUE_OBSERVED);
    graph.node(TN_OP_LINEAR, {x, w}, {y});
    auto outcome = [&](uint64_t scratch_at) {
        Bench bench("mock:0:hazards=1");
        auto plan = bench.ready(graph, {0, 1024, 2048}, scratch_at);
        require_ok(bench.set(graph[x], 0, std::vector<float>(16, 1)));
        require_ok(bench.set(graph[w], 1024, std::vector<float>(64, 1)));
        return bench.run(*plan, 1);
    };
    require_ok(outcome(4096));
    check_says(outcome(0), Code::internal, {"node 'y' (linear) reads 'x'", "where 'scratch of group 0' lies"});
    check_says(outcome(1024), Code::internal, {"reads 'w'", "where 'scratch of group 0' lies"});
    check_says(outcome(2048), Code::internal, {"reads 'scratch'", "where 'y' lies"});
}

TEST_CASE("mock: gets and copies are checked too, queued or not, and copies carry the new name") {
    auto registry = make_registry();
    Bench from("mock:0:hazards=1", 1 << 12, registry), to("mock:1:hazards=1:peer=1", 1 << 12, registry);
    const tn_value a = describe(DType::f32, {8}, "a"), b = describe(DType::f32, {8}, "b");
    std::vector<float> numbers(8);
    require_ok(from.stream->set(*from.buffer, a, 0, k_numbers.data(), 32));
    require_ok(from.stream->synchronize());
    require_ok(from.buffer->get(a, 0, numbers.data(), 32));
    CHECK(numbers == k_numbers);
    check_says(from.buffer->get(b, 0, numbers.data(), 32), Code::internal, {"hazard: get reads 'b'", "where 'a' lies"});
    require_ok(from.stream->get(*from.buffer, b, 0, numbers.data(), 32));
    check_says(from.stream->synchronize(), Code::internal, {"hazard: get reads 'b'", "where 'a' lies"});
    require_ok(to.stream->copy(*to.buffer, b, *from.buffer, a));
    require_ok(to.stream->get(*to.buffer, b, 0, numbers.data(), 32));
    require_ok(to.stream->synchronize());
    CHECK(numbers == k_numbers);
    require_ok(to.stream->copy(*to.buffer, b, *from.buffer, b));
    check_says(to.stream->synchronize(), Code::internal, {"hazard: copy reads 'b'", "where 'a' lies", "mock:0"});
    check_says(to.buffer->get(a, 0, numbers.data(), 32), Code::internal, {"reads 'a'", "where 'b' lies"});
}

TEST_CASE("mock: delays hold up what is queued, records of events among it") {
    Bench bench("mock:0:delay_us=4000:seed=5");
    const Line line;
    auto event = got(Event::create(bench.device));
    const tn_value x = Bench::at(line.graph[line.x], 0), y = Bench::at(line.graph[line.y], 256);
    std::vector<float> numbers(8);
    const std::function<Status()> pieces[] = {
        [&] { return event->record(*bench.stream); },
        [&] { return bench.stream->set(*bench.buffer, x, 0, k_numbers.data(), 32); },
        [&] { return bench.stream->copy(*bench.buffer, y, *bench.buffer, x); },
        [&] { return bench.stream->get(*bench.buffer, y, 0, numbers.data(), 32); },
    };
    for (const auto &piece : pieces) {
        const auto begin = std::chrono::steady_clock::now();
        for (int i = 0; i < 10; ++i) require_ok(piece());
        require_ok(bench.stream->synchronize());
        CHECK(std::chrono::steady_clock::now() - begin > std::chrono::milliseconds(4));  // 20 on average
    }
    CHECK(numbers == k_numbers);
}
