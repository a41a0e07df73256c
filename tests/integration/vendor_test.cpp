// A plugin built out of tree from the SDK alone loads beside the CPU's, takes over an op, and brings one of its own.
#include <doctest/doctest.h>

#include "graph_runner.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

std::shared_ptr<Registry> with_vendor() {
    RegistryOptions options;
    options.plugin_dirs = {TENON_TEST_PLUGINS, TENON_TEST_VENDOR_PLUGINS};
    options.search_environment = options.search_user = options.search_install = false;
    auto registry = Registry::create(std::move(options));
    REQUIRE_MESSAGE(registry.ok(), registry.status().message());
    return *registry;
}

std::string device_of(const Schedule &schedule, std::string_view node) {
    for (size_t i = 0; i < schedule.nodes().size(); ++i)
        if (schedule.graph().nodes()[i].name == node) return schedule.devices()[schedule.nodes()[i].device]->name();
    return {};
}

}  // namespace

TEST_CASE("vendor: the plugin takes over rms_norm, the rest stays with the CPU, and nothing is copied") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {3, 64});
    const ValueId norm = b.rms_norm(x, b.weight("norm", DType::f32, {64}), 1e-5f, "norm");
    b.output(b.linear(norm, b.weight("w", DType::f32, {16, 64}), k_no_value, "linear"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    const Data data = {
        {"x", random_floats(3 * 64, 1)}, {"norm", random_floats(64, 2)}, {"w", random_floats(16 * 64, 3)}};
    Runner vendor, cpu;
    vendor.registry = with_vendor();
    Status status = vendor.prepare(*graph, "twice:0,cpu", data);
    REQUIRE_MESSAGE(status.ok(), status.message());
    CHECK(device_of(vendor.executable->schedule(), "norm") == "twice:0");
    CHECK(device_of(vendor.executable->schedule(), "linear").starts_with("cpu"));
    CHECK(vendor.executable->schedule().copies().empty());  // both use host memory in place
    REQUIRE(cpu.prepare(*graph, "cpu", data).ok());
    status = vendor.run(data);
    REQUIRE_MESSAGE(status.ok(), status.message());
    REQUIRE(cpu.run(data).ok());
    CHECK(nmse(vendor.output(0), cpu.output(0)) < 1e-9);
}

TEST_CASE("vendor: an op of its own runs there, and elsewhere through its formula") {
    for (const char *devices : {"twice:0,cpu", "cpu"}) {
        CAPTURE(devices);
        auto registry = with_vendor();
        auto opened = registry->open("twice:0");  // loads the plugin, which registers its op
        REQUIRE_MESSAGE(opened.ok(), opened.status().message());
        GraphBuilder b(&registry->ops(), registry);
        const ValueId x = b.input("x", DType::f32, {2, 5});
        b.output(b.node("twice.twice", {b.node(TN_OP_NEG, {x}, {}, "neg")}, {}, "twice"));
        auto graph = std::move(b).finish();
        REQUIRE_MESSAGE(graph.ok(), graph.status().message());
        CHECK(graph->values()[graph->outputs()[0]].shape == Shape{2, 5});
        Runner runner;
        runner.registry = registry;
        const Data data = {{"x", to_bytes<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10})}};
        Status status = runner.prepare(*graph, devices, data);
        REQUIRE_MESSAGE(status.ok(), status.message());
        CHECK(device_of(runner.executable->schedule(), "twice") ==
              std::string(devices).substr(0, std::string(devices).find(',')));
        status = runner.run(data);
        REQUIRE_MESSAGE(status.ok(), status.message());
        CHECK(runner.output(0) == std::vector<float>{-2, -4, -6, -8, -10, -12, -14, -16, -18, -20});
    }
}

TEST_CASE("vendor: a formula in which an op is missing isn't taken for a whole one") {
    auto registry = with_vendor();
    REQUIRE(registry->open("twice:0").ok());
    GraphBuilder b(&registry->ops(), registry);
    b.output(b.node("twice.twice", {b.input("x", DType::f32, {4})}, {}, "twice"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    Runner runner;
    runner.registry = registry;
    const Status status = runner.prepare(*graph, "mock:0:ops=mul", {});
    REQUIRE(status.code() == Code::unsupported);
    CHECK(status.message().find("twice") != std::string::npos);
}
