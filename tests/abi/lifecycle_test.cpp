// Query, load, unload, open, options, lists: the outer frame of the ABI, on the mock plugin.
#include "host.h"

namespace abi_test {

const Library &mock_library() {
    static const Library library(TENON_TEST_MOCK_PLUGIN);
    return library;
}

TEST_CASE("query has no side effect and can be repeated; load checks sizes") {
    Host host;
    tn_host table = host.table();
    const tn_plugin *root = nullptr, *again = nullptr;
    CHECK(mock_library().query()(&table, &root) == TN_OK);
    CHECK(mock_library().query()(&table, &again) == TN_OK);
    REQUIRE(root != nullptr);
    CHECK(root == again);
    CHECK(std::string(root->name) == "mock");
    CHECK(root->struct_size >= TN_V1_PLUGIN);
    CHECK(host.adapters.empty());
    CHECK(mock_library().query()(&table, nullptr) == TN_INVALID_ARGUMENT);

    tn_registrar registrar = host.registrar();
    tn_instance instance = nullptr;
    table.struct_size = TN_V1_HOST - 1;
    CHECK(root->load(&table, &registrar, 0, &instance) == TN_INVALID_ARGUMENT);
    table.struct_size = TN_SIZE_HOST;
    registrar.struct_size = TN_V1_REGISTRAR - 8;
    CHECK(root->load(&table, &registrar, 0, &instance) == TN_INVALID_ARGUMENT);
    CHECK(instance == nullptr);
    registrar.struct_size = TN_SIZE_REGISTRAR;
    host.refuse_adapters = true;
    CHECK(root->load(&table, &registrar, 0, &instance) == TN_BUSY);
    CHECK(instance == nullptr);
    CHECK(last_error().find("mock:0") != std::string::npos);
}

TEST_CASE("a host of a later minor: longer tables, and more devices by option") {
    Host host;
    host.options["devices"] = "5";
    std::vector<uint64_t> longer(sizeof(tn_host) / 8 + 4, 0x5a5a5a5a5a5a5a5a);
    tn_host table = host.table();
    table.struct_size = longer.size() * 8;
    std::memcpy(longer.data(), &table, sizeof table);
    tn_registrar registrar = host.registrar();
    const auto *as_table = reinterpret_cast<const tn_host *>(longer.data());
    const tn_plugin *root = nullptr;
    tn_instance instance = nullptr;
    REQUIRE(mock_library().query()(as_table, &root) == TN_OK);
    REQUIRE(root->load(as_table, &registrar, 0, &instance) == TN_OK);
    CHECK(host.adapters.size() == 5);
    CHECK(root->unload(instance) == TN_OK);
    host.options["devices"] = "many";
    CHECK(root->load(as_table, &registrar, 0, &instance) == TN_INVALID_ARGUMENT);
    CHECK(last_error().find("devices") != std::string::npos);
}

TEST_CASE("two instances in one process are apart") {
    Host first, second;
    Plugin a(mock_library(), first), b(mock_library(), second);
    CHECK(a.instance != b.instance);
    CHECK(first.adapters.at("mock:0") != second.adapters.at("mock:0"));
    OpenDevice device(a, first.adapters.at("mock:0"));
    CHECK(b.unload() == TN_OK);
    CHECK(a.unload() == TN_BUSY);
    tn_buffer buffer = device.alloc(64);
    device.p.buffer->destroy(buffer);
}

TEST_CASE("unload answers TN_BUSY with any object alive, and all goes on (D44)") {
    Host host;
    Plugin plugin(mock_library(), host);
    auto device = std::make_unique<OpenDevice>(plugin, host.adapters.at("mock:1"));
    tn_buffer buffer = device->alloc(0);
    tn_stream stream = device->stream();
    tn_event event = device->event();
    CHECK(plugin.unload() == TN_BUSY);
    CHECK(!last_error().empty());
    device->p.buffer->destroy(buffer);
    CHECK(plugin.unload() == TN_BUSY);
    CHECK(device->p.event->record(event, stream) == TN_OK);
    CHECK(device->p.stream->synchronize(stream, TN_FOREVER) == TN_OK);
    device->p.event->destroy(event);
    CHECK(plugin.unload() == TN_BUSY);
    device->p.stream->destroy(stream);
    CHECK(plugin.unload() == TN_BUSY);
    device.reset();
    CHECK(plugin.unload() == TN_OK);
}

TEST_CASE("options: unknown ones are named, values are checked, lists follow the rules") {
    Host host;
    Plugin plugin(mock_library(), host);
    const tn_adapter adapter = host.adapters.at("mock:0");
    auto open = [&](const char *key, const char *value) {
        auto option = make<tn_option>(TN_SIZE_OPTION);
        option.key = key, option.value = value;
        auto params = make<tn_open>(TN_SIZE_OPEN);
        params.options = &option, params.option_count = 1, params.option_stride = sizeof option;
        tn_device device = nullptr;
        const tn_status status = plugin.root->adapter->open(adapter, &params, &device);
        CHECK((device != nullptr) == (status == TN_OK));
        if (device != nullptr) plugin.root->device->close(device);
        return status;
    };
    CHECK(open("colour", "red") == TN_INVALID_ARGUMENT);
    CHECK(last_error().find("colour") != std::string::npos);
    CHECK(open("ops", "add+telepathy") == TN_INVALID_ARGUMENT);
    CHECK(last_error().find("telepathy") != std::string::npos);
    CHECK(open("seed", "-1") == TN_INVALID_ARGUMENT);
    CHECK(open("ops", "add+mul") == TN_OK);

    OpenDevice device(plugin, adapter);
    CHECK(device.p.device->option_set(device.handle, "nothing", "1") == TN_NOT_FOUND);
    device.set("delay_us", "12");
    char text[8] = "unread";
    uint64_t bytes = 0;
    CHECK(device.p.device->option_get(device.handle, "delay_us", &bytes, nullptr) == TN_OK);
    CHECK(bytes == 3);
    bytes = 2;
    CHECK(device.p.device->option_get(device.handle, "delay_us", &bytes, text) == TN_TOO_SMALL);
    CHECK(bytes == 3);
    CHECK(std::string(text) == "unread");
    CHECK(device.p.device->option_get(device.handle, "delay_us", &bytes, text) == TN_OK);
    CHECK(std::string(text) == "12");
    CHECK(device.p.device->option_get(device.handle, "nothing", &bytes, text) == TN_NOT_FOUND);

    uint64_t total = 0, available = 0;
    tn_buffer buffer = device.alloc(1 << 20);
    CHECK(device.p.adapter->memory(adapter, &total, &available) == TN_OK);
    CHECK(total - available == 1 << 20);
    device.p.buffer->destroy(buffer);
    CHECK(plugin.root->adapter->memory(adapter, nullptr, &available) == TN_INVALID_ARGUMENT);
    const void *table = nullptr;
    CHECK(plugin.root->extension(plugin.instance, "acme.none", &table) == TN_NOT_FOUND);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("a closable library leaves the process, its threads with it") {
    // a copy, since the other tests hold the original open
    const std::string copy = std::string(TENON_TEST_MOCK_PLUGIN) + ".copy.so";
    REQUIRE(std::system(("cp '" + std::string(TENON_TEST_MOCK_PLUGIN) + "' '" + copy + "'").c_str()) == 0);
    const Library library(copy.c_str());
    {
        Host host;
        Plugin plugin(library, host);
        CHECK((plugin.root->flags & TN_PLUGIN_CLOSABLE) != 0);
        OpenDevice device(plugin, host.adapters.at("mock:0"));
        tn_stream stream = device.stream();
        CHECK(device.p.stream->synchronize(stream, TN_FOREVER) == TN_OK);
        device.p.stream->destroy(stream);
    }
    library.close();
    CHECK(dlopen(copy.c_str(), RTLD_NOW | RTLD_NOLOAD) == nullptr);
    std::remove(copy.c_str());
}
#endif

}  // namespace abi_test
