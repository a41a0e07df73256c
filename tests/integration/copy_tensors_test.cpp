// A graph with its weights and states goes from one session's devices to another's, and runs there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "random_graph.h"

using namespace tenon;
using namespace tenon::testing;

TEST_CASE("copy_tensors: a graph goes on on another device where it was, states included") {
    const auto registry = make_registry();
    for (uint32_t seed = 1; seed < 6; ++seed)
        for (const char *target : {"mock:1:max_buffer_bytes=8192", "mock:1:alignment=4096", "mock:1,mock:0"}) {
            CAPTURE(seed);
            CAPTURE(target);
            RandomGraph graph(seed, 40);
            const Data weights = graph.weights(seed);
            Runner here;
            here.registry = registry;
            require_ok(here.prepare(graph.graph(), "mock:0", weights));
            require_ok(here.run(RandomGraph::inputs(0)));
            Runner there;
            there.registry = registry;
            there.session = session_on(registry, target);
            auto copied = there.session->copy_tensors(graph.graph(), here.tensors);
            REQUIRE_MESSAGE(copied.ok(), copied.status().message());
            CHECK(copied->size() == here.tensors.size());
            there.tensors = *copied;
            auto executable = there.session->prepare(graph.graph(), there.tensors);
            REQUIRE_MESSAGE(executable.ok(), executable.status().message());
            there.executable = *executable;
            for (uint32_t run = 1; run < 3; ++run) {
                require_ok(here.run(RandomGraph::inputs(run)));
                require_ok(there.run(RandomGraph::inputs(run)));
                CHECK(here.output(0) == there.output(0));
            }
        }
}

TEST_CASE("copy_tensors: a missing tensor, and no room, are answers that leave nothing behind") {
    const auto registry = make_registry();
    RandomGraph graph(3, 40);
    Runner here;
    here.registry = registry;
    require_ok(here.prepare(graph.graph(), "mock:0", graph.weights(3)));
    const auto target = session_on(registry, "mock:1");
    CHECK(target->copy_tensors(graph.graph(), {}).status().code() == Code::invalid_argument);
    const auto free_bytes = [&] {
        for (const AdapterInfo &adapter : registry->adapters())
            if (adapter.name == "mock:1") return adapter.free_bytes;
        return uint64_t(0);
    };
    const uint64_t before = free_bytes();
    for (const char *option : {"fail_alloc", "fail_set", "fail_init"})
        for (int nth = 1;; ++nth) {
            require_ok(target->devices()[0]->set_option(option, std::to_string(nth)));
            const bool copied = target->copy_tensors(graph.graph(), here.tensors).ok();
            CHECK(free_bytes() == before);
            if (!copied) continue;
            CHECK(nth > 1);
            require_ok(target->devices()[0]->set_option(option, "0"));
            break;
        }
}
