// The host's memory runs out at every allocation in turn, in the core and in the plugins: a status each time, never an
// exception or an end of the program; nothing is kept; and the next, smaller graph runs on the same session.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "failing_memory.h"
#include "random_graph.h"
#include "tenon/compare.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

constexpr const char *k_devices = "mock:0,mock:1:seed=2";
constexpr uint32_t k_runs = 3;

/// A graph, what it needs, and what it gives.
struct Problem {
    Problem(uint32_t seed, uint32_t nodes) : random(seed, nodes), weights(random.weights(seed)) {}
    const Graph &graph() const { return random.graph(); }

    RandomGraph random;
    Data weights;
    std::vector<Bytes> want;
};

Result<TensorMap> load(FailingMemory &failing, Session &session, const Problem &problem) {
    TENON_ASSIGN(const auto homes, failing([&] { return session.place_tensors(problem.graph()); }));
    TENON_TRY(failing([&] { return session.measure(problem.graph(), homes).status(); }));
    TensorMap tensors;
    for (const TensorHome &home : homes) {
        const Value &value = problem.graph().values()[home.value];
        const TensorSpec spec{value.name, value.type, value.shape};
        TENON_ASSIGN(auto made, failing([&] { return allocate_tensors(home.buffer_type, {&spec, 1}, Usage::any); }));
        const auto found = problem.weights.find(value.name);
        TENON_TRY(
            failing([&] { return found == problem.weights.end() ? made[0].clear() : made[0].set(0, found->second); }));
        tensors.set(value.name, made[0]);
    }
    return tensors;
}

/// Several runs, two of them in flight, the inputs written or borrowed.
Status run(FailingMemory &failing, Session &session, Executable &executable, const Graph &graph) {
    std::vector<Data> inputs;
    for (uint32_t i = 0; i < k_runs; ++i) inputs.push_back(RandomGraph::inputs(i));
    Status status;
    for (uint32_t i = 0; i < k_runs && status.ok(); ++i) {
        for (ValueId input : graph.inputs()) {
            const Bytes &bytes = inputs[i].at(graph.values()[input].name);
            if (status.ok())
                status = failing([&] {
                    return i % 2 ? session.input_borrow(executable, input, bytes)
                                 : session.input_write(executable, input, bytes);
                });
        }
        if (status.ok()) status = failing([&] { return session.submit(executable).status(); });
    }
    // Whatever happened, what was borrowed is still read by runs in flight.
    Status end = failing([&] { return session.synchronize(); });
    return status.ok() ? end : status;
}

Result<std::vector<Bytes>> read(FailingMemory &failing, Session &session, Executable &executable, const Graph &graph) {
    std::vector<Bytes> outputs;
    for (ValueId id : graph.outputs()) {
        outputs.emplace_back(size_t(*canonical_bytes(graph.values()[id].type, graph.values()[id].shape.sizes())));
        TENON_TRY(failing([&] { return session.read(executable, id, outputs.back()); }));
    }
    return outputs;
}

Result<std::vector<Bytes>> load_and_run(FailingMemory &failing, Session &session, const Problem &problem) {
    TENON_ASSIGN(const TensorMap tensors, load(failing, session, problem));
    TENON_ASSIGN(const auto executable, failing([&] { return session.prepare(problem.graph(), tensors); }));
    TENON_TRY(run(failing, session, *executable, problem.graph()));
    return read(failing, session, *executable, problem.graph());
}

struct Fixture {
    Fixture() : registry(make_registry("2")), problem(5, 12), small(4, 3) {
        FailingMemory none(Shortage::once, 0);
        options.slots = 2;
        options.log = [](LogLevel, std::string_view) {};
        for (Problem *each : {&problem, &small}) {
            auto session = make_session(none);
            REQUIRE_MESSAGE(session.ok(), session.status().message());
            auto outputs = load_and_run(none, **session, *each);
            REQUIRE_MESSAGE(outputs.ok(), outputs.status().message());
            each->want = *std::move(outputs);
            options.pins = problem.random.pins("mock", 2, 3, 0);
        }
    }

    Result<std::unique_ptr<Session>> make_session(FailingMemory &failing) {
        auto devices = failing([&] { return registry->open(k_devices); });
        if (!devices.ok()) return devices.status();
        SessionOptions chosen = options;
        return failing([&] { return Session::create(registry, *std::move(devices), std::move(chosen)); });
    }

    void check_small(Session &session) {
        FailingMemory none(Shortage::once, 0);
        const auto outputs = load_and_run(none, session, small);
        REQUIRE_MESSAGE(outputs.ok(), outputs.status().message());
        CHECK(*outputs == small.want);
    }

    /// `attempt` once for each allocation that it makes, which fails, until there is none left to fail.
    void each_allocation(const std::function<Status(FailingMemory &)> &attempt) {
        for (Shortage shortage : {Shortage::once, Shortage::stays}) {
            int64_t live = 0;
            for (uint64_t nth = 0;; ++nth) {
                CAPTURE(int(shortage));
                CAPTURE(nth);
                REQUIRE(nth < 100'000);
                bool struck = false;
                {
                    FailingMemory failing(shortage, nth);  // the first time nothing fails
                    const Status status = attempt(failing);
                    struck = failing.struck();
                    if (!struck) require_ok(status);
                    // Where a failure only cost speed, or a log line, the call may succeed.
                    if (!status.ok()) CHECK_MESSAGE(status.code() == Code::out_of_memory, status.message());
                }
                if (nth == 0)
                    live = live_allocations();
                else
                    REQUIRE(live_allocations() == live);
                if (nth && !struck) {
                    CHECK(nth > 20);
                    break;
                }
            }
        }
    }

    std::shared_ptr<Registry> registry;
    SessionOptions options;
    Problem problem, small;
};

}  // namespace

TEST_CASE("host memory: devices are opened, a graph is loaded, prepared and run, whatever allocation fails") {
    Fixture fixture;
    fixture.each_allocation([&](FailingMemory &failing) -> Status {
        TENON_ASSIGN(const auto session, fixture.make_session(failing));
        const auto outputs = load_and_run(failing, *session, fixture.problem);
        if (outputs.ok()) CHECK(*outputs == fixture.problem.want);
        fixture.check_small(*session);
        return outputs.status();
    });
}

TEST_CASE("host memory: a plugin is loaded and a device opened, whatever allocation fails") {
    Fixture fixture;
    RegistryOptions options;
    options.plugin_dirs = {TENON_TEST_PLUGINS};
    options.search_environment = options.search_user = options.search_install = false;
    options.log = fixture.options.log;
    fixture.each_allocation([&](FailingMemory &failing) -> Status {
        // Without failures: nlohmann's json, which reads the manifests, needs memory to free what it has.
        TENON_ASSIGN(const auto registry, Registry::create(options));
        const auto devices = failing([&] { return registry->open("mock:0"); });
        // The next try isn't hindered: nothing is refused because memory ran out once.
        const auto again = registry->open("mock:0");
        if (again.ok())
            CHECK((*again)[0]->name() == "mock:0");
        else
            require_ok(devices.ok() ? again.status() : devices.status());
        return devices.status();
    });
}

TEST_CASE("host memory: a graph goes to another session and is compared there, whatever allocation fails") {
    Fixture fixture;
    const Graph &graph = fixture.problem.graph();
    FailingMemory none(Shortage::once, 0);
    const auto reference = fixture.make_session(none);
    REQUIRE_MESSAGE(reference.ok(), reference.status().message());
    const auto tensors = load(none, **reference, fixture.problem);
    REQUIRE_MESSAGE(tensors.ok(), tensors.status().message());
    const Data inputs = RandomGraph::inputs(1);
    std::vector<InputValue> values;
    for (ValueId input : graph.inputs()) values.push_back({input, inputs.at(graph.values()[input].name)});
    fixture.each_allocation([&](FailingMemory &failing) -> Status {
        TENON_ASSIGN(const auto session, fixture.make_session(failing));
        const auto compared = [&]() -> Status {
            TENON_ASSIGN(const TensorMap copies, failing([&] { return session->copy_tensors(graph, *tensors); }));
            size_t equal = 0, outputs = 0;
            for (const Node &node : graph.nodes()) outputs += node.outputs.size();
            TENON_TRY(failing([&] {
                return compare(graph, {*session, copies}, {**reference, *tensors}, values,
                               [&](const NodeDifference &found) {
                                   equal += found.difference.nmse == 0;
                                   return Status();
                               });
            }));
            CHECK(equal == outputs);
            return {};
        };
        Status status = compared();
        fixture.check_small(*session);
        require_ok((*reference)->synchronize());
        return status;
    });
}

TEST_CASE("host memory: tensors are offloaded and a device changes between runs, whatever allocation fails") {
    Fixture fixture;
    const Graph &graph = fixture.problem.graph();
    Offload offload;
    for (ValueId id = 0; id < graph.values().size(); ++id) offload.group_of.push_back(id % 3);
    offload.graphs = {&graph, 1};
    fixture.options.pins = {};
    fixture.each_allocation([&](FailingMemory &failing) -> Status {
        TENON_ASSIGN(const auto session, fixture.make_session(failing));
        const auto run_twice = [&]() -> Status {
            TENON_ASSIGN(const auto homes, failing([&] { return session->place_tensors(graph, offload); }));
            TENON_TRY(failing([&] { return session->plan(graph, homes).status(); }));
            TENON_ASSIGN(const TensorMap tensors, load_tensors(graph, homes, fixture.problem.weights));
            TENON_ASSIGN(const auto executable, failing([&] { return session->prepare(graph, tensors); }));
            TENON_TRY(run(failing, *session, *executable, graph));
            TENON_TRY(failing([&] { return session->devices()[0]->set_option("delay_us", "0"); }));
            return run(failing, *session, *executable, graph);
        };
        Status status = run_twice();
        fixture.check_small(*session);
        return status;
    });
}

TEST_CASE("host memory: a graph is built, whatever allocation fails") {
    Fixture fixture;
    const auto build = [] {
        GraphBuilder b;
        ValueId x = b.input("x", DType::f32, {4, 64});
        const ValueId scale = b.weight("scale", DType::f32, {64});
        for (int i = 0; i < 20; ++i) x = b.rms_norm(x, scale, 1e-6f);
        b.output(b.slice(x, 0, 1, 2));
        return std::move(b).finish();
    };
    fixture.each_allocation([&](FailingMemory &failing) -> Status {
        TENON_ASSIGN(const Graph graph, failing(build));
        CHECK(graph.nodes().size() == 20);
        return {};
    });
}
