// What scheduling costs: nanoseconds per node for placement, split, order and memory planning, without any plugin; the
// whole of Session::prepare on the mock, plugin's part included; and the cached case.
//
//   bench_sched [--benchmark_filter=REGEX]
//
// Each device gets its own memory; weights at both ends of each stretch of nodes say where the stretch runs, all else
// spreads between them. ns_per_node is what the limits speak of; the stages are told apart by the stage/ rows.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>

#include "sched/areas.h"
#include "sched/order.h"
#include "tenon/session.h"

using namespace tenon;

namespace {

constexpr int64_t k_width = 64;

[[noreturn]] void give_up(const std::string &why) {
    fmt::print(stderr, "bench_sched: {}\n", why);
    std::exit(1);
}

/// A chain with residuals, cut by weights into stretches of `length` nodes on devices 0, 1, ... in turn.
struct Problem {
    LargeVector<uint32_t> device_of;  // per value: of a weight, else k_no_value; filled as the graph is built
    Graph graph;
    ValueTable values;
    SupportTable support;
    MemoryReach reach;
    DeviceSet devices;

    Problem(uint32_t nodes, uint32_t device_count, uint32_t length)
        : graph(build(nodes, device_count, length)), values(graph), support(device_count, nodes) {
        for (NodeId node = 0; node < nodes; ++node)
            for (uint32_t d = 0; d < device_count; ++d) support.at(d, node).bits = NodeSupport::k_claimed;
        reach.devices = reach.types = device_count;
        reach.bound = device_of;
        reach.usable.resize(size_t(device_count) * device_count);
        for (uint32_t d = 0; d < device_count; ++d) {
            reach.usable[size_t(d) * device_count + d] = 1;
            reach.first.push_back(d);
            reach.same.push_back(d);
            tn_buffer_type_info info{};
            info.struct_size = TN_SIZE_BUFFER_TYPE_INFO;
            info.name = "bench";
            info.alignment = 256;
            devices.list.push_back(nullptr);
            devices.types.emplace_back(nullptr, nullptr, reinterpret_cast<tn_buffer_type>(uintptr_t(d) + 1), info);
        }
    }

    Graph build(uint32_t nodes, uint32_t device_count, uint32_t length) {
        GraphBuilder b;
        ValueId x = b.input("x", DType::f32, {4, k_width}), residual = x;
        for (uint32_t i = 0; i < nodes; ++i) {
            const uint32_t at = i % length;
            if (at == 0 || at + 1 == length) {
                const ValueId weight = b.weight(fmt::format("w.{}", i), DType::f32, {4, k_width});
                device_of.resize(weight + 1, k_no_value);
                device_of[weight] = i / length % device_count;
                x = b.node(TN_OP_MUL, {x, weight});
            } else if (at % 4 == 3) {
                x = b.node(TN_OP_ADD, {x, residual});
                residual = x;
            } else {
                x = b.node(TN_OP_NEG, {x});
            }
            if (at == 0) residual = x;
        }
        b.output(x);
        auto graph = std::move(b).finish();
        if (!graph.ok()) give_up(graph.status().message());
        device_of.resize(graph->values().size(), k_no_value);
        return *graph;
    }

    PlaceInput input() const { return {graph, values, support, reach, {}, {}, {}}; }
};

/// The scheduler's own work for one graph; every node is a group of its own, as with a plugin that fuses nothing.
struct Work {
    const Problem &problem;
    Placement placement;
    Split cut;
    Order order;
    uint64_t bytes = 0;

    void place() { placement = take(tenon::place(problem.input())); }
    void split() {
        cut = take(tenon::split(problem.input(), placement, {}));
        order = order_segments(problem.input(), placement, cut);
    }
    void plan() {
        Areas areas(problem.devices);
        areas.expect(placement.values);
        LargeVector<Storage> stored(problem.graph.values().size()), copied;
        std::vector<bool> crosses(stored.size());
        for (const auto &use : order.foreign_uses()) crosses[use.base] = true;
        for (ValueId id = 0; id < stored.size(); ++id) {
            if (!problem.values.is_base(id) || problem.reach.is_bound(id)) continue;
            const bool kept = crosses[id] || (problem.values.flags[id] & (TN_VALUE_INPUT | TN_VALUE_OBSERVED));
            stored[id] = take(areas.add(kept ? Storage::Kind::slot : Storage::Kind::arena, placement.values[id].device,
                                        4 * k_width * 4, ""));
        }
        for (const Copy &copy : cut.copies)
            copied.push_back(take(areas.add(Storage::Kind::arena, copy.to, copy.bytes, "")));
        LargeVector<uint32_t> now(problem.devices.count()), begin;
        for (const Segment &segment : cut.segments) {
            uint32_t &time = now[segment.device];
            begin.push_back(time);
            time += 2;
            for (uint32_t copy : segment.copies()) areas.touch(copied[copy], begin.back() + 1);
            for (NodeId id : segment.nodes()) {
                const Node &node = problem.graph.nodes()[id];
                for (ValueId v : node.inputs)
                    if (stored[v].device == segment.device) areas.touch(stored[v], time);
                for (ValueId v : node.outputs) areas.touch(stored[v], time);
                if (stored[node.inputs[0]].kind == Storage::Kind::arena)
                    areas.offer({stored[node.outputs[0]], stored[node.inputs[0]], time});
                ++time;
            }
        }
        for (const auto &use : order.foreign_uses()) {
            const uint32_t next = order.first_after(stored[use.base].device, use.segment, cut);
            areas.touch(stored[use.base], next == k_no_value ? Areas::k_to_the_end : begin[next]);
        }
        if (Status status = areas.plan(); !status.ok()) give_up(status.message());
        bytes = 0;
        for (uint32_t d = 0; d < problem.devices.count(); ++d)
            bytes += areas.summary(Storage::Kind::arena, d).bytes + areas.summary(Storage::Kind::slot, d).bytes;
    }

    template <class T>
    static T take(Result<T> result) {
        if (!result.ok()) give_up(result.status().message());
        return *std::move(result);
    }
};

/// A benchmark checks what it times: every node where its weights say, as many segments as there are stretches.
void check(const Problem &problem, const Work &work, uint32_t nodes, uint32_t devices, uint32_t length) {
    for (NodeId node = 0; node < nodes; ++node)
        if (work.placement.nodes[node].device != node / length % devices)
            give_up(fmt::format("node {} is on device {}", node, work.placement.nodes[node].device));
    const uint32_t stretches = devices == 1 ? 1 : (nodes + length - 1) / length;
    if (work.cut.segments.size() != stretches) give_up(fmt::format("{} segments", work.cut.segments.size()));
    if (problem.devices.count() > 1 && work.cut.copies.empty()) give_up("no copies");
}

void per_node(benchmark::State &state, uint32_t nodes) {
    state.counters["ns_per_node"] = benchmark::Counter(
        double(nodes) * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void schedule(benchmark::State &state) {
    const auto nodes = uint32_t(state.range(0)), devices = uint32_t(state.range(1)), length = uint32_t(state.range(2));
    const Problem problem(nodes, devices, length);
    Work work{problem, {}, {}, {}};
    work.place(), work.split(), work.plan();
    check(problem, work, nodes, devices, length);
    for (auto _ : state) {
        work.place(), work.split(), work.plan();
        benchmark::DoNotOptimize(work.bytes);
    }
    per_node(state, nodes);
    state.counters["segments"] = double(work.cut.segments.size());
}

void stage(benchmark::State &state, int which) {
    const auto nodes = uint32_t(state.range(0)), devices = uint32_t(state.range(1)), length = uint32_t(state.range(2));
    const Problem problem(nodes, devices, length);
    Work work{problem, {}, {}, {}};
    work.place(), work.split(), work.plan();
    for (auto _ : state) {
        if (which == 0) work.place();
        if (which == 1) work.split();
        if (which == 2) work.plan();
    }
    per_node(state, nodes);
}

std::unique_ptr<Session> open(std::shared_ptr<Registry> &registry, const std::string &devices, uint32_t cached) {
    RegistryOptions registry_options;
    registry_options.plugin_dirs = {TENON_BENCH_PLUGINS};
    registry_options.search_environment = registry_options.search_user = registry_options.search_install = false;
    registry = Work::take(Registry::create(registry_options));
    SessionOptions options;
    options.cached_executables = cached;
    return Work::take(Session::create(registry, Work::take(registry->open(devices)), std::move(options)));
}

/// All of Session::prepare: asking the device, preparing its plan, allocating and binding too.
void prepare(benchmark::State &state) {
    const auto nodes = uint32_t(state.range(0));
    std::shared_ptr<Registry> registry;
    const auto session = open(registry, "mock:0", 0);
    GraphBuilder b;
    ValueId x = b.input("x", DType::f32, {4, k_width});
    for (uint32_t i = 0; i < nodes; ++i) x = b.node(i % 4 == 3 ? TN_OP_ABS : TN_OP_NEG, {x});
    b.output(x);
    const Graph graph = Work::take(std::move(b).finish());
    for (auto _ : state) benchmark::DoNotOptimize(Work::take(session->prepare(graph, {})));
    per_node(state, nodes);
}

/// The same graph again, among others: one look-up.
void cached(benchmark::State &state) {
    const auto nodes = uint32_t(state.range(0));
    std::shared_ptr<Registry> registry;
    const auto session = open(registry, "mock:0,cpu", 16);
    std::vector<Graph> graphs;
    TensorMap tensors;
    for (int64_t rows : {1, 2, 3, 4}) {
        GraphBuilder b;
        ValueId x = b.input("x", DType::f32, {rows, k_width});
        for (uint32_t i = 0; i < nodes; ++i) x = b.node(TN_OP_NEG, {x});
        b.output(x);
        graphs.push_back(Work::take(std::move(b).finish()));
        Work::take(session->prepare(graphs.back(), tensors));
    }
    size_t next = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(Work::take(session->prepare(graphs[++next % graphs.size()], tensors)));
    if (session->counters().schedules != graphs.size()) give_up("a cached graph was scheduled again");
}

void sizes(benchmark::internal::Benchmark *b) {
    for (int64_t nodes : {1000, 10000, 100000, 1000000}) {
        b->Args({nodes, 1, 50});
        for (int64_t devices : {2, 8})
            for (int64_t length : {5, 50}) b->Args({nodes, devices, length});
    }
    b->ArgNames({"nodes", "devices", "length"});
}

void stage_sizes(benchmark::internal::Benchmark *b) {
    for (int64_t nodes : {100000, 1000000}) b->Args({nodes, 1, 50})->Args({nodes, 8, 5});
}

BENCHMARK(schedule)->Apply(sizes);
BENCHMARK_CAPTURE(stage, place, 0)->Apply(stage_sizes);
BENCHMARK_CAPTURE(stage, split_and_order, 1)->Apply(stage_sizes);
BENCHMARK_CAPTURE(stage, memory, 2)->Apply(stage_sizes);
BENCHMARK(prepare)->Arg(1000)->Arg(100000);
BENCHMARK(cached)->Arg(1000)->Arg(10000);

}  // namespace

BENCHMARK_MAIN();
