// Whatever fails, and at whichever call: a status, nothing left in flight, no memory kept, and the next, smaller graph
// runs on the same session.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "random_graph.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

uint64_t free_bytes(Registry &registry, const std::string &name) {
    for (const AdapterInfo &adapter : registry.adapters())
        if (adapter.name == name) return adapter.free_bytes;
    FAIL("no adapter ", name);
    return 0;
}

/// Loads a graph into a session and runs it a few times, several runs in flight. The last run's outputs.
Result<std::vector<Bytes>> load_and_run(Session &session, const Graph &graph, const Data &weights, uint32_t runs) {
    TENON_ASSIGN(const auto homes, session.place_tensors(graph));
    TENON_ASSIGN(const TensorMap tensors, load_tensors(graph, homes, weights));
    TENON_ASSIGN(const auto executable, session.prepare(graph, tensors));
    for (uint32_t i = 0; i < runs; ++i) {
        const Data inputs = RandomGraph::inputs(i);
        for (ValueId input : graph.inputs())
            TENON_TRY(session.input_write(*executable, input, inputs.at(graph.values()[input].name)));
        TENON_TRY(session.submit(*executable).status());
    }
    TENON_TRY(session.synchronize());
    std::vector<Bytes> outputs;
    for (ValueId id : graph.outputs()) {
        outputs.emplace_back(size_t(*canonical_bytes(graph.values()[id].type, graph.values()[id].shape.sizes())));
        TENON_TRY(session.read(*executable, id, outputs.back()));
    }
    return outputs;
}

constexpr const char *k_devices = "mock:0:delay_us=5,mock:1:delay_us=5:seed=2";
constexpr uint32_t k_runs = 4;

std::unique_ptr<Session> make_session(const std::shared_ptr<Registry> &registry, std::vector<Pin> pins) {
    auto devices = registry->open(k_devices);
    REQUIRE_MESSAGE(devices.ok(), devices.status().message());
    SessionOptions options;
    options.slots = 2;
    options.pins = std::move(pins);
    auto session = Session::create(registry, *devices, std::move(options));
    REQUIRE_MESSAGE(session.ok(), session.status().message());
    return *std::move(session);
}

}  // namespace

TEST_CASE("faults: each call of each kind fails in turn, with its status, and the next graph runs") {
    struct Kind {
        const char *option;
        Code code;
    };
    const Kind kinds[] = {{"fail_alloc", Code::out_of_memory}, {"fail_prepare", Code::out_of_memory},
                          {"fail_bind", Code::out_of_memory},  {"fail_event", Code::out_of_memory},
                          {"fail_init", Code::out_of_memory},  {"fail_place", Code::internal},
                          {"fail_set", Code::internal},        {"fail_get", Code::internal},
                          {"fail_copy", Code::internal},       {"fail_run", Code::internal}};
    const auto registry = make_registry();
    RandomGraph large(3, 24), small(4, 8);
    const Data weights = large.weights(3), small_weights = small.weights(4);
    const auto pins = large.pins("mock", 2, 4, 0);
    const auto want = load_and_run(*make_session(registry, pins), large.graph(), weights, k_runs);
    const auto small_want = load_and_run(*make_session(registry, {}), small.graph(), small_weights, k_runs);
    REQUIRE_MESSAGE(want.ok(), want.status().message());
    REQUIRE_MESSAGE(small_want.ok(), small_want.status().message());
    const uint64_t free_before[] = {free_bytes(*registry, "mock:0"), free_bytes(*registry, "mock:1")};
    int failures = 0;
    for (const Kind &kind : kinds)
        for (size_t device : {0, 1})
            for (int nth = 1;; ++nth) {
                CAPTURE(kind.option);
                CAPTURE(device);
                CAPTURE(nth);
                REQUIRE(nth < 1000);
                bool failed = false;
                {
                    auto session = make_session(registry, pins);
                    auto &faulty = *session->devices()[device];
                    require_ok(faulty.set_option(kind.option, std::to_string(nth)));
                    const auto got = load_and_run(*session, large.graph(), weights, k_runs);
                    failed = !got.ok();
                    if (failed) {
                        ++failures;
                        CHECK(got.status().code() == kind.code);
                        CHECK(got.status().message().find("on demand") != std::string::npos);
                    } else {
                        CHECK(*got == *want);
                        const auto left = faulty.get_option(kind.option);
                        REQUIRE(left.ok());
                        // Nothing has been swallowed: all calls are done, and the failing one wasn't among them.
                        CHECK(*left != "0");
                    }
                    require_ok(faulty.set_option(kind.option, "0"));
                    const auto next = load_and_run(*session, small.graph(), small_weights, k_runs);
                    REQUIRE_MESSAGE(next.ok(), next.status().message());
                    CHECK(*next == *small_want);
                }
                CHECK(free_bytes(*registry, "mock:0") == free_before[0]);
                CHECK(free_bytes(*registry, "mock:1") == free_before[1]);
                if (!failed) break;
            }
    CHECK(failures > 100);
}

TEST_CASE("faults: a run that fails ends those behind it, is told once, and the states stay usable") {
    const auto registry = make_registry();
    RandomGraph graph(11, 60);
    const Data weights = graph.weights(11);
    for (uint32_t slots : {1u, 2u, 4u, 8u})
        for (int nth = 1; nth < 12; ++nth) {
            CAPTURE(slots);
            CAPTURE(nth);
            Runner runner;
            runner.registry = registry;
            require_ok(runner.prepare(graph.graph(), k_devices, weights, graph.pins("mock", 2, 4, 0), slots));
            auto &faulty = *runner.session->devices()[nth % 2];
            require_ok(faulty.set_option("fail_run", std::to_string(nth)));
            int told = 0;
            for (uint32_t i = 0; i < 10; ++i) {
                const Data inputs = RandomGraph::inputs(i);
                Status status;
                for (ValueId input : graph.graph().inputs())
                    if (status.ok())
                        status = runner.session->input_write(*runner.executable, input,
                                                             inputs.at(graph.graph().values()[input].name));
                if (status.ok()) status = runner.session->submit(*runner.executable).status();
                if (status.ok()) continue;
                ++told;
                CHECK(status.message().find("on demand") != std::string::npos);
                CHECK(status.message().find(faulty.name()) != std::string::npos);
            }
            told += !runner.session->synchronize().ok();
            CHECK(told == 1);
            require_ok(runner.session->synchronize());
            // From the same state as a session that has never failed, the same numbers follow.
            const ValueId state = graph.graph().find("cache");
            Runner fresh;
            fresh.registry = registry;
            require_ok(fresh.prepare(graph.graph(), "mock:0", weights));
            for (Runner *each : {&runner, &fresh}) {
                require_ok(const_cast<Tensor *>(each->tensors.find("cache"))->clear());
                require_ok(each->run(RandomGraph::inputs(3)));
            }
            CHECK(state != k_no_value);
            CHECK(runner.output(0) == fresh.output(0));
        }
}

TEST_CASE("faults: a device that is lost is told of, and what doesn't need it goes on") {
    const auto registry = make_registry();
    RandomGraph graph(12, 30);
    const Data weights = graph.weights(12);
    Runner runner;
    runner.registry = registry;
    require_ok(runner.prepare(graph.graph(), k_devices, weights, graph.pins("mock", 2, 4, 0), 2));
    require_ok(runner.session->devices()[0]->set_option("lost", "1"));
    CHECK(runner.run(RandomGraph::inputs(0)).code() == Code::device_lost);
    CHECK(runner.run(RandomGraph::inputs(0)).code() == Code::device_lost);
    Runner other;
    other.registry = registry;
    require_ok(other.prepare(graph.graph(), "mock:1", weights));
    require_ok(other.run(RandomGraph::inputs(0)));
}
