#include "tenon/registry.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "registry/fixture_folder.h"
#include "tenon/op_set.h"

using namespace tenon;
using namespace tenon::fixture;
using State = PluginOutcome::State;
namespace fs = std::filesystem;

namespace {

// The only outcome of a registry over one plugin folder, after everything that can be loaded was.
PluginOutcome outcome_of(const std::string &fixture, LogLines &lines) {
    TempDir dir;
    add_plugin(dir.path(), fixture);
    auto registry = registry_of(only({dir.path()}, lines));
    REQUIRE(registry->outcomes().size() == 1);
    CHECK_MESSAGE(registry->outcomes()[0].state == State::available, registry->outcomes()[0].reason);
    auto adapters = registry->adapters();
    CHECK(adapters.empty() == (registry->outcomes()[0].state == State::refused));
    return registry->outcomes()[0];
}

std::string refusal_of(const std::string &fixture) {
    LogLines lines;
    PluginOutcome outcome = outcome_of(fixture, lines);
    CHECK(outcome.state == State::refused);
    CHECK(lines.contains(outcome.reason));
    return outcome.reason;
}

}  // namespace

TEST_CASE("registry: a good plugin is found, loaded when asked for, and tells its adapters") {
    TempDir dir;
    LogLines lines;
    fs::path folder = add_plugin(dir.path(), "good");
    auto registry = registry_of(only({dir.path()}, lines));
    auto outcomes = registry->outcomes();
    REQUIRE(outcomes.size() == 1);
    CHECK(outcomes[0].folder == folder);
    CHECK(outcomes[0].origin == "given");
    CHECK(outcomes[0].name == "good");
    CHECK(outcomes[0].version == "1.2.3");
    CHECK(outcomes[0].devices == std::vector<std::string>{"good"});
    CHECK(outcomes[0].state == State::available);
    CHECK(outcomes[0].abi_chosen == -1);

    auto adapters = registry->adapters();
    REQUIRE(adapters.size() == 1);
    CHECK(adapters[0].name == "good:0");
    CHECK(adapters[0].plugin == "good");
    CHECK(adapters[0].kind == DeviceKind::cpu);
    CHECK(adapters[0].total_bytes == 1000);
    CHECK(adapters[0].free_bytes == 400);
    CHECK(registry->outcomes()[0].state == State::loaded);
    CHECK(registry->outcomes()[0].abi_chosen == 0);
    CHECK(registry->ops().find("fixture.twice"));
    auto types = registry->buffer_types();
    REQUIRE(types.size() == 1);
    CHECK(types[0].name() == "good.host");
}

TEST_CASE("registry: faulty plugins are refused with the reason, the rest goes on") {
    CHECK_HAS(refusal_of("no_export"), "doesn't export tn_plugin_query_v1");
    CHECK_HAS(refusal_of("query_null"), "ok without a table");
    CHECK(refusal_of("query_fails") == "query_fails: the driver is too old");
    CHECK_HAS(refusal_of("short_table"), "table 'plugin' is too short");
    CHECK_HAS(refusal_of("missing_function"), "device.close");
    CHECK(refusal_of("load_fails") == "load_fails: no licence for this machine");
    CHECK_HAS(refusal_of("load_null"), "without an instance");
    CHECK_HAS(refusal_of("wrong_range"), "it speaks ABI 1.900 to 1.901, this host 1.0 to 1.0");
    std::string unknown = refusal_of("unknown_status");
    CHECK_HAS(unknown, "unknown_status: something new");
    CHECK_HAS(unknown, "4711");
}

TEST_CASE("registry: a library that the loader can't open is refused in the loader's words") {
    TempDir dir;
    LogLines lines;
    fs::path folder = add_plugin(dir.path(), "good");
    // The right file header, but its list of needed libraries names one that there isn't.
    std::ifstream in(folder / "good.so", std::ios::binary);
    std::string elf{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    in.close();
    const size_t at = elf.find("libc.so.6");
    REQUIRE(at != elf.npos);
    elf.replace(at, 9, "libc.so.x");
    write_file(folder / "good.so", elf, 0755);
    auto registry = registry_of(only({dir.path()}, lines));
    CHECK(registry->adapters().empty());
    CHECK_HAS(registry->outcomes()[0].reason, "the loader can't open it: libc.so.x: ");
}

TEST_CASE("registry: what a failed load had registered is gone") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "load_fails");
    auto registry = registry_of(only({dir.path()}, lines));
    CHECK(registry->adapters().empty());
    CHECK(registry->buffer_types().empty());
    CHECK(!registry->ops().find("fixture.twice"));
    CHECK(registry->host_memory().bytes_now == 0);
}

TEST_CASE("registry: the library has to be the one that the manifest names") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "other_name");
    auto registry = registry_of(only({dir.path()}, lines));
    CHECK(registry->adapters().empty());
    CHECK_HAS(registry->outcomes()[0].reason, "calls itself 'somebody_else', its manifest 'other_name'");
}

TEST_CASE("registry: a plugin of a later minor loads, its longer tables cut to what is known") {
    LogLines lines;
    PluginOutcome outcome = outcome_of("future", lines);
    CHECK_MESSAGE(outcome.state == State::loaded, outcome.reason);
    CHECK(outcome.abi_chosen == 0);
    CHECK(lines.contains("speaks ABI 1.0 to 1.7, its manifest says 1.0 to 1.0"));
}

TEST_CASE("registry: texts that belong to no failure are dropped, log lines are cleaned") {
    LogLines lines;
    CHECK(outcome_of("grumbling", lines).state == State::loaded);
    CHECK(lines.contains("3 grumbling: level  [31m 99 ?"));
    CHECK(!lines.contains("aaaa"));
}

TEST_CASE("registry: an adapter that the manifest doesn't name isn't there") {
    TempDir dir;
    LogLines lines;
    auto manifest = manifest_of("good");
    manifest["devices"] = {"good:1"};
    add_plugin(dir.path(), "good", manifest);
    auto registry = registry_of(only({dir.path()}, lines));
    CHECK(registry->adapters().empty());
    CHECK(registry->outcomes()[0].state == State::loaded);
    CHECK(lines.contains("adapter_add was refused: the manifest names no device 'good:0'"));
}

TEST_CASE("registry: each refusal before opening is kept with its reason") {
    TempDir dir;
    LogLines lines;
    auto with = [&](const char *folder, const char *key, nlohmann::json value) {
        auto manifest = manifest_of("good");
        manifest[key] = std::move(value);
        add_plugin(dir.path(), "good", manifest, folder);
    };
    with("a_arch", "arch", "pdp11");
    with("b_feature", "cpu_features", {"warp_drive"});
    with("c_sanitizer", "sanitizer", "undefined,memory");
    with("d_file", "file", "missing.so");
    with("e_key", "extra", 1);
    with("f_range", "abi", {{"major", 1}, {"min", 900}, {"max", 901}});
    with("g_rights", "version", "1.2.3");
    chmod((dir.path() / "g_rights/good.so").c_str(), 0777);
    with("h_json", "version", "1.2.3");
    write_file(dir.path() / "h_json/manifest.json", "{\"manifest\": 1,}");
    with("i_none", "version", "1.2.3");
    fs::remove(dir.path() / "i_none/manifest.json");
    add_plugin(dir.path(), "good", manifest_of("good"), "z_good");
    write_file(dir.path() / "loose.so", "");

    auto registry = registry_of(only({dir.path()}, lines));
    auto outcomes = registry->outcomes();
    REQUIRE(outcomes.size() == 11);
    const char *expected[] = {"no manifest.json",
                              "pdp11",
                              "'warp_drive'",
                              "'undefined,memory'",
                              "missing.so is missing",
                              "unknown key",
                              "1.900",
                              "others",
                              "byte 16",
                              "no manifest.json"};
    for (size_t i = 0; i < 10; ++i) {
        CHECK(outcomes[i].state == State::refused);
        CHECK_HAS(outcomes[i].reason, expected[i]);
    }
    CHECK(outcomes[0].folder == dir.path());
    CHECK(outcomes[10].state == State::available);  // a refused one shadows nobody
    CHECK(registry->open("good").ok());

    auto missing = registry->open("foo");
    CHECK(missing.status().code() == Code::not_found);
    CHECK_HAS(missing.status().message(), "no device 'foo'; there are: good:0; refused plugins: ");
    CHECK_HAS(missing.status().message(), "good (it is built for pdp11");
}

TEST_CASE("registry: the first of a name wins, later ones are shadowed") {
    TempDir first, second;
    LogLines lines;
    add_plugin(first.path(), "good", manifest_of("good"), "b");
    add_plugin(first.path(), "good", manifest_of("good"), "c");
    add_plugin(second.path(), "good", manifest_of("good"), "a");
    add_plugin(second.path(), "future");
    auto registry = registry_of(only({first.path(), second.path()}, lines));
    auto outcomes = registry->outcomes();
    REQUIRE(outcomes.size() == 4);
    CHECK(outcomes[0].state == State::available);
    CHECK(outcomes[1].state == State::shadowed);
    CHECK(outcomes[2].state == State::shadowed);
    CHECK_HAS(outcomes[2].reason, (first.path() / "b").string());
    CHECK(outcomes[3].state == State::available);
    CHECK(registry->adapters().size() == 2);
}

TEST_CASE("registry: the environment's directories are searched, relative entries never") {
    TempDir dir, elsewhere;
    LogLines lines;
    add_plugin(dir.path(), "good");
    add_plugin(elsewhere.path(), "future");
    const fs::path before = fs::current_path();
    fs::current_path(elsewhere.path());
    setenv("TENON_PLUGIN_PATH", (".::" + dir.path().string()).c_str(), 1);
    RegistryOptions options = only({}, lines);
    options.search_environment = true;
    auto registry = registry_of(std::move(options));
    unsetenv("TENON_PLUGIN_PATH");
    fs::current_path(before);
    auto outcomes = registry->outcomes();
    REQUIRE(outcomes.size() == 1);
    CHECK(outcomes[0].name == "good");
    CHECK(outcomes[0].origin == "TENON_PLUGIN_PATH");
    CHECK(lines.contains("'.' is ignored"));
}

TEST_CASE("registry: only plugins that the list can name are loaded") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "future");
    add_plugin(dir.path(), "good");
    auto registry = registry_of(only({dir.path()}, lines));
    auto devices = registry->open("GOOD:0:threads=3");
    REQUIRE_MESSAGE(devices.ok(), devices.status().message());
    REQUIRE(devices->size() == 1);
    CHECK((*devices)[0]->name() == "good:0");
    CHECK(*(*devices)[0]->get_option("threads") == "3");
    CHECK(registry->outcomes()[0].state == State::available);
    CHECK(registry->outcomes()[1].state == State::loaded);
    const std::string typo = registry->open("futur").status().message();
    CHECK(typo == "no device 'futur'; there are: good:0; plugins that aren't loaded may bring: future");
    CHECK(registry->outcomes()[0].state == State::available);  // and a typo loads nothing either
    CHECK(registry->open("good,future:threads=1,good:threads=7")->size() == 3);
    CHECK(registry->open("")->size() == 2);
}

TEST_CASE("registry: errors name the device, its option, and where plugins were looked for") {
    TempDir dir, empty;
    LogLines lines;
    add_plugin(dir.path(), "good");
    auto registry = registry_of(only({dir.path()}, lines));
    Status colour = registry->open("good:colour=red").status();
    CHECK(colour.code() == Code::invalid_argument);
    CHECK(colour.message() == "device good: good: unknown option 'colour'");
    CHECK_HAS(registry->open("good:1").status().message(), "no device 'good:1'; there are: good:0");
    CHECK(registry->open("good,,").status().code() == Code::invalid_argument);

    auto none = registry_of(only({empty.path()}, lines));
    for (const char *list : {"", "cpu"}) {
        Status status = none->open(list).status();
        CHECK(status.code() == Code::not_found);
        CHECK_HAS(status.message(), "no usable plugin was found");
        CHECK_HAS(status.message(), empty.path().string());
        CHECK_HAS(status.message(), "TENON_PLUGIN_PATH");
    }
    CHECK(Registry::create(only({"/nowhere/at/all"}, lines)).status().code() == Code::invalid_argument);
}

TEST_CASE("registry: unload answers busy while something lives, and then all is gone") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "good");
    auto registry = registry_of(only({dir.path()}, lines));
    CHECK(registry->unload("good").code() == Code::not_found);
    auto devices = *registry->open("good");
    auto type = devices[0]->default_buffer_type();
    auto buffer = *type.alloc(64, Usage::any);
    Status busy = registry->unload("good");
    CHECK(busy.code() == Code::busy);
    CHECK(busy.message() == "good: 2 of its objects are alive; it can't be unloaded");
    CHECK(buffer->clear(1).ok());  // all goes on
    devices.clear();
    CHECK(registry->unload("good").code() == Code::busy);  // the buffer keeps its device
    buffer.reset();
    const OpInfo *twice = registry->ops().find("fixture.twice");
    REQUIRE(twice);
    { auto gone = std::move(type); }
    auto types = registry->buffer_types();
    REQUIRE(types.size() == 1);
    CHECK(registry->unload("good").ok());
    CHECK(registry->outcomes()[0].state == State::available);
    CHECK(!registry->ops().find("fixture.twice"));
    CHECK(twice->vendor->infer(twice->vendor->ctx, nullptr, nullptr, 0, nullptr) == TN_INVALID_STATE);
    CHECK(types[0].alloc(64, Usage::any).status().code() == Code::invalid_state);
    CHECK(registry->host_memory().bytes_now == 0);
    CHECK(registry->open("good").ok());  // and it can be loaded again
}

TEST_CASE("registry: an unload that the plugin refuses leaves it usable") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "unload_fails");
    {
        auto registry = registry_of(only({dir.path()}, lines));
        CHECK(registry->adapters().size() == 1);
        CHECK(registry->unload("unload_fails").message() == "unload_fails: a thread does not end");
        CHECK(registry->open("unload_fails").ok());
    }
    CHECK(lines.contains("unload failed, its library stays: unload_fails: a thread does not end"));
}

TEST_CASE("registry: devices outlive their registry") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "good");
    auto registry = registry_of(only({dir.path()}, lines));
    auto devices = *registry->open("good");
    registry.reset();
    auto buffer = devices[0]->default_buffer_type().alloc(64, Usage::any);
    REQUIRE(buffer.ok());
    devices.clear();
    CHECK((*buffer)->clear(7).ok());
}

TEST_CASE("registry: two registries load one library as two instances") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "good");
    auto a = registry_of(only({dir.path()}, lines)), b = registry_of(only({dir.path()}, lines));
    auto device_a = (*a->open("good"))[0], device_b = (*b->open("good"))[0];
    CHECK(device_a->plugin() != device_b->plugin());
    CHECK(!(device_a->default_buffer_type() == device_b->default_buffer_type()));
    device_a.reset();
    CHECK(a->unload("good").ok());
    CHECK(device_b->set_option("threads", "2").ok());  // the library is still there
}

TEST_CASE("registry: a library is looked up by what it is, not by the path it had") {
    LogLines lines;
    for (const char *fixture : {"good", "future", "good", "future"}) {
        // One after the other in the same place, under the same name: descriptors and paths are used again.
        TempDir dir;
        auto manifest = manifest_of(fixture);
        manifest["file"] = "plugin.so";
        fs::path folder = add_plugin(dir.path(), fixture, manifest, "plugin");
        fs::rename(folder / (std::string(fixture) + ".so"), folder / "plugin.so");
        auto registry = registry_of(only({dir.path()}, lines));
        REQUIRE_MESSAGE(registry->adapters().size() == 1, registry->outcomes()[0].reason);
        CHECK(registry->adapters()[0].name == std::string(fixture) + ":0");
    }
}

TEST_CASE("registry: many threads load, open and unload at once") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "good");
    add_plugin(dir.path(), "future");
    auto registry = registry_of(only({dir.path()}, lines));
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 50; ++i) {
                auto devices = registry->open(t % 2 ? "good" : "future,good");
                const Code code = devices.status().code();
                // Another thread may unload the plugin before its adapters are listed, or before one is opened.
                CHECK((devices.ok() || code == Code::not_found || code == Code::invalid_state));
                if (devices.ok()) CHECK((*devices)[0]->set_option("threads", "2").ok());
                devices = std::vector<std::shared_ptr<Device>>();
                Status status = registry->unload("good");
                CHECK((status.ok() || status.code() == Code::busy || status.code() == Code::not_found));
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK(registry->host_memory().bytes_now == 0);
}

TEST_CASE("registry: host memory is limited, counted and given back") {
    TempDir dir;
    LogLines lines;
    add_plugin(dir.path(), "good");
    RegistryOptions options = only({dir.path()}, lines);
    options.host_memory_limit_bytes = 1000;
    auto registry = registry_of(std::move(options));
    auto device = (*registry->open("good"))[0];
    auto type = device->default_buffer_type();
    auto first = type.alloc(600, Usage::any);
    CHECK(first.ok());
    Status over = type.alloc(600, Usage::any).status();
    CHECK(over.code() == Code::out_of_memory);
    CHECK(over.message() == "good.host: 600 bytes: good: the host has no memory for a buffer");
    CHECK(type.alloc(400, Usage::any).ok());
    CHECK(type.alloc(0, Usage::any).ok());
    CHECK(registry->host_memory().bytes_now == 600);
    CHECK(registry->host_memory().bytes_peak == 1000);
    CHECK(registry->host_memory().allocations == 3);
}

TEST_CASE("registry: cancel tokens are new, raised and cleared") {
    LogLines lines;
    auto registry = registry_of(only({}, lines));
    uint64_t a = registry->new_cancel_token(), b = registry->new_cancel_token();
    CHECK(a != 0);
    CHECK(b != 0);
    CHECK(a != b);
}
