#include "registry/tables.h"

#include <doctest/doctest.h>

using namespace tenon;

namespace {

// A plugin whose functions are all there and of no use.
struct Root {
    tn_adapter_api adapter{TN_SIZE_ADAPTER_API, nullptr, [](auto...) { return TN_OK; }, [](auto...) { return TN_OK; }};
    tn_device_api device{};
    tn_buffer_type_api buffer_type{};
    tn_buffer_api buffer{};
    tn_stream_api stream{};
    tn_event_api event{};
    tn_plan_api plan{};
    tn_plugin root{};

    // Sets all functions of a table: they have one size and one representation here, and are never called.
    template <class T>
    static void fill(T &table, uint64_t size) {
        auto *words = reinterpret_cast<void (**)()>(&table);
        for (size_t i = 2; i < sizeof(T) / sizeof(void *); ++i) words[i] = [] {};
        table.struct_size = size;
    }
    Root() {
        fill(device, TN_SIZE_DEVICE_API);
        fill(buffer_type, TN_SIZE_BUFFER_TYPE_API);
        fill(buffer, TN_SIZE_BUFFER_API);
        fill(stream, TN_SIZE_STREAM_API);
        fill(event, TN_SIZE_EVENT_API);
        fill(plan, TN_SIZE_PLAN_API);
        root.struct_size = TN_SIZE_PLUGIN;
        root.abi = {0, 0};
        root.name = root.vendor = root.version = "x";
        root.load = [](auto...) -> tn_status { return TN_OK; };
        root.unload = [](auto...) -> tn_status { return TN_OK; };
        root.adapter = &adapter, root.device = &device, root.buffer_type = &buffer_type, root.buffer = &buffer;
        root.stream = &stream, root.event = &event, root.plan = &plan;
    }
    PluginTables out;
    uint32_t minor = 99;
    Status read(tn_range host = {0, 0}) {
        out = {};
        minor = 99;
        return read_tables(&root, host, out, minor);
    }
};

}  // namespace

TEST_CASE("tables: the host takes the highest minor of both ranges") {
    Root r;
    CHECK(r.read().ok());
    CHECK(r.minor == 0);
    r.root.abi = {0, 7};
    CHECK(r.read({0, 3}).ok());
    CHECK(r.minor == 3);
    r.root.abi = {2, 7};
    CHECK(r.read({1, 9}).ok());
    CHECK(r.minor == 7);
    r.root.abi = {4, 7};
    Status status = r.read({0, 3});
    CHECK(status.code() == Code::unsupported);
    CHECK(status.message() == "it speaks ABI 1.4 to 1.7, this host 1.0 to 1.3");
    CHECK(r.minor == 99);
    r.root.abi = {3, 1};
    CHECK(!r.read({0, 9}).ok());
}

TEST_CASE("tables: an optional function that is left out answers unimplemented") {
    Root r;
    r.buffer.copy = nullptr;
    r.plan.update = nullptr;
    r.stream.copy = nullptr;
    r.buffer_type.import_host = nullptr;
    REQUIRE(r.read().ok());
    CHECK(r.out.buffer.copy(nullptr, nullptr, nullptr, nullptr) == TN_UNIMPLEMENTED);
    CHECK(r.out.plan.update(nullptr, nullptr) == TN_UNIMPLEMENTED);
    CHECK(r.out.stream.copy(nullptr, nullptr, nullptr, nullptr, nullptr) == TN_UNIMPLEMENTED);
    CHECK(r.out.buffer_type.import_host(nullptr, nullptr, 0, 0, nullptr) == TN_UNIMPLEMENTED);
    CHECK(r.out.root.extension(nullptr, nullptr, nullptr) == TN_UNIMPLEMENTED);
    CHECK((r.out.buffer.reset == r.buffer.reset));
}

TEST_CASE("tables: what is needed and missing is told by name") {
    Root r;
    r.device.close = nullptr;
    CHECK(r.read().message() == "it lacks the required function device.close");
    Root s;
    s.plan.run = nullptr;
    CHECK(s.read().message() == "it lacks the required function plan.run");
    Root t;
    t.root.stream = nullptr;
    CHECK(t.read().message() == "its table 'stream' is missing");
    Root u;
    u.event.struct_size = TN_V1_EVENT_API - 1;
    CHECK(u.read().message().find("its table 'event' is too short") == 0);
    Root v;
    v.root.struct_size = TN_V1_PLUGIN - 1;
    CHECK(v.read().message().find("its table 'plugin' is too short") == 0);
    Root w;
    w.root.name = nullptr;
    CHECK(w.read().message() == "it lacks the required function plugin.name");
    PluginTables out;
    uint32_t minor = 0;
    CHECK(read_tables(nullptr, {0, 0}, out, minor).message() == "its table 'plugin' is missing");
}

TEST_CASE("tables: longer ones of a later minor are read up to what is known") {
    Root r;
    struct {
        tn_event_api table;
        void *later[3];
    } longer{r.event, {}};
    longer.table.struct_size = sizeof longer;
    r.root.event = &longer.table;
    REQUIRE(r.read().ok());
    CHECK(r.out.event.struct_size == TN_SIZE_EVENT_API);
    CHECK((r.out.event.wait == r.event.wait));
}
