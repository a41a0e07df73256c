// What a plugin must refuse, ignore or understand in the host's structs (D05 to D07, D21), through supports_op.
#include "host.h"

namespace abi_test {
namespace {

struct Fixture {
    Host host;
    Plugin plugin{mock_library(), host};
    OpenDevice device{plugin, host.adapters.at("mock:0")};
    GraphBuilder g;
    uint32_t a = g.value(tensor({2, 3}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT));
    uint32_t b = g.value(tensor({2, 3}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT));
    uint32_t y = g.value(tensor({2, 3}, TN_TYPE_ID_F32, 0, TN_VALUE_OBSERVED));
    Fixture() { g.node(TN_OP_ADD, {a, b}, {y}); }

    tn_status ask(uint32_t *bits = nullptr) { return ask(g.get(), bits); }
    tn_status ask(const tn_graph *graph, uint32_t *bits) {
        std::vector<uint32_t> out(16, 99);
        last_error().clear();
        const tn_status status = device.p.device->supports_op(device.handle, graph, out.data());
        if (bits != nullptr) *bits = out[0];
        if (status != TN_OK) {
            CHECK(out[0] == 99);           // untouched (D01)
            CHECK(!last_error().empty());  // told (D02)
        }
        return status;
    }
    std::string reason() {
        char text[200] = {};
        uint64_t bytes = sizeof text;
        CHECK(device.p.device->support_reason(device.handle, g.get(), 0, &bytes, text) == TN_OK);
        CHECK(bytes == std::strlen(text) + 1);
        return text;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a right graph is supported; its reason is no reason") {
    uint32_t bits = 0;
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == TN_SUPPORT_YES);
    uint64_t bytes = 0;
    CHECK(device.p.device->support_reason(device.handle, g.get(), 0, &bytes, nullptr) == TN_INVALID_STATE);
    CHECK(device.p.device->support_reason(device.handle, g.get(), 1, &bytes, nullptr) == TN_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Fixture, "exactly sized structs, and longer ones with a longer stride") {
    Exact<tn_graph> graph(*g.get());
    Exact<tn_value> exact_values(g.values[0]);  // one value's bytes, not one more
    uint32_t bits = 0;
    CHECK(ask(graph.get(), &bits) == TN_OK);

    const uint64_t stride = sizeof(tn_value) + 24;
    std::vector<uint64_t> values(g.values.size() * stride / 8, 0x7b7b7b7b7b7b7b7b);
    for (size_t i = 0; i < g.values.size(); ++i) {
        tn_value v = g.values[i];
        v.struct_size = stride;
        std::memcpy(reinterpret_cast<char *>(values.data()) + i * stride, &v, sizeof v);
    }
    graph.get()->values = reinterpret_cast<const tn_value *>(values.data());
    graph.get()->value_stride = stride;
    CHECK(ask(graph.get(), &bits) == TN_OK);
    CHECK(bits == TN_SUPPORT_YES);
    graph.get()->value_stride = TN_SIZE_VALUE - 8;
    CHECK(ask(graph.get(), nullptr) == TN_INVALID_ARGUMENT);
    graph.get()->value_stride = stride;
    graph.get()->struct_size = TN_V1_GRAPH - 1;
    CHECK(ask(graph.get(), nullptr) == TN_INVALID_ARGUMENT);
    graph.get()->struct_size = TN_SIZE_GRAPH;
    graph.get()->values = nullptr;
    CHECK(ask(graph.get(), nullptr) == TN_INVALID_ARGUMENT);
    CHECK(ask(nullptr, nullptr) == TN_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Fixture, "what breaks a value's contract is refused") {
    const tn_value good = g.values[a];
    auto refused = [&](auto &&spoil) {
        g.values[a] = good;
        spoil(g.values[a]);
        return ask() == TN_INVALID_ARGUMENT;
    };
    CHECK(refused([](tn_value &v) { v.struct_size = TN_V1_VALUE - 1; }));
    CHECK(refused([](tn_value &v) { v.reserved = 1; }));
    CHECK(refused([](tn_value &v) { v.flags = 16; }));
    CHECK(refused([](tn_value &v) { v.rank = 9; }));
    CHECK(refused([](tn_value &v) { v.shape[0] = -1; }));
    CHECK(refused([](tn_value &v) { v.stride_bytes[0] = -4; }));
    CHECK(refused([](tn_value &v) { v.stride_bytes[0] = 13; }));
    CHECK(refused([](tn_value &v) { v.shape[0] = INT64_MAX; }));
    CHECK(refused([](tn_value &v) { v.shape[0] = v.shape[1] = int64_t{1} << 32; }));
    CHECK(refused([](tn_value &v) { v.stride_bytes[0] = INT64_MAX - 3; }));
    CHECK(refused([](tn_value &v) { v.offset = UINT64_MAX; }));
    CHECK(refused([](tn_value &v) { v.buffer_type = 0; }));  // the graph has none
    CHECK(refused([](tn_value &v) { v.view_of = 77; }));
    CHECK(refused([](tn_value &v) { v.type = TN_TYPE_ID_Q8_0; }));  // 3 elements aren't whole blocks
    g.values[a] = good;
    CHECK(ask() == TN_OK);
}

TEST_CASE_FIXTURE(Fixture, "views lie inside their base, and no view is a base") {
    const uint32_t wide = g.value(tensor({4, 3}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT));
    g.values[a] = tensor({2, 3});
    g.values[a].view_of = wide;
    g.values[a].offset = 24;
    CHECK(ask() == TN_OK);
    g.values[a].offset = 28;
    CHECK(ask() == TN_INVALID_ARGUMENT);
    g.values[a].offset = 22;
    CHECK(ask() == TN_INVALID_ARGUMENT);
    g.values[a].offset = 0;
    g.values[a].stride_bytes[0] = 40;  // the second row ends beyond
    CHECK(ask() == TN_INVALID_ARGUMENT);
    g.values[a].stride_bytes[0] = 24;
    CHECK(ask() == TN_OK);
    g.values[b] = g.values[a];
    g.values[b].view_of = a;
    CHECK(ask() == TN_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Fixture, "what breaks a node's contract is refused") {
    const tn_node good = g.nodes[0];
    const uint32_t wrong[] = {0, 3}, absent[] = {0, TN_NONE};
    auto status = [&](auto &&spoil) {
        g.nodes[0] = good;
        spoil(g.nodes[0]);
        return ask();
    };
    CHECK(status([&](tn_node &n) { n.inputs = wrong; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.inputs = absent; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.inputs = nullptr; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.input_count = 1; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.output_count = 0; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.outputs = &absent[1]; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.precision = 2; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.struct_size = TN_V1_NODE - 4; }) == TN_INVALID_ARGUMENT);
    CHECK(status([&](tn_node &n) { n.op = TN_OP_CONCAT; }) == TN_INVALID_ARGUMENT);  // params are missing
}

TEST_CASE_FIXTURE(Fixture, "what a plugin doesn't know is no, not an error (D21)") {
    uint32_t bits = 1;
    g.nodes[0].op = 5000;
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == 0);
    CHECK(!reason().empty());
    g.nodes[0].op = TN_OP_VENDOR_FIRST + 9;
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == 0);
    g.nodes[0].op = TN_OP_ADD;
    g.values[a].type = 4000;
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == 0);
    CHECK(reason().find("4000") != std::string::npos);
    tn_plan plan = nullptr;
    CHECK(device.p.plan->prepare(device.handle, g.get(), &plan) == TN_UNSUPPORTED);
    CHECK(plan == nullptr);
    CHECK(last_error().find("node 0") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "params: reserved words, later fields") {
    struct Later {
        tn_params_softmax now;
        uint64_t added;
    } params{};
    params.now.struct_size = sizeof params;
    params.now.scale = 1;
    g.nodes.clear();
    g.node(TN_OP_SOFTMAX, {a}, {y}, &params);
    uint32_t bits = 0;
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == TN_SUPPORT_YES);
    params.added = 1;
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == 0);
    CHECK(reason().find("later") != std::string::npos);
    params.added = 0;
    params.now.reserved = 1;
    CHECK(ask() == TN_INVALID_ARGUMENT);
    params.now.reserved = 0;
    params.now.struct_size = TN_SIZE_PARAMS_SOFTMAX - 4;
    CHECK(ask() == TN_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Fixture, "chained structs: unknown ones are ignored unless required") {
    auto second = make<tn_ext>(TN_SIZE_EXT);
    second.name = "acme.second";
    auto first = make<tn_ext>(TN_SIZE_EXT);
    first.name = "acme.first", first.next = &second;
    g.values[b].next = &first;
    CHECK(ask() == TN_OK);
    second.flags = TN_EXT_REQUIRED;
    CHECK(ask() == TN_UNSUPPORTED);
    CHECK(last_error().find("acme.second") != std::string::npos);
    second.flags = 2;
    CHECK(ask() == TN_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Fixture, "support depends on the buffer types of bound values") {
    auto info = make<tn_buffer_type_info>(TN_SIZE_BUFFER_TYPE_INFO);
    REQUIRE(device.p.buffer_type->info(device.type, &info) == TN_OK);
    CHECK(std::memcmp(info.owner, plugin.root->guid, 16) == 0);
    CHECK((info.flags & TN_TYPE_IS_HOST) == 0);
    uint32_t can = 0;
    CHECK(device.p.device->supports_buffer_type(device.handle, &info, &can) == TN_OK);
    CHECK(can == 1);
    g.types.push_back(info);
    g.values[a].buffer_type = 0;
    uint32_t bits = 0;
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == TN_SUPPORT_YES);
    g.types[0].name = "acme.host", g.types[0].owner[0] ^= 1, g.types[0].flags = TN_TYPE_IS_HOST;
    CHECK(device.p.device->supports_buffer_type(device.handle, &g.types[0], &can) == TN_OK);
    CHECK(can == 0);
    CHECK(ask(&bits) == TN_OK);
    CHECK(bits == 0);
    CHECK(reason().find("acme.host") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "chosen ops only; offload is told") {
    OpenDevice few(plugin, host.adapters.at("mock:1"), {{"ops", "mul+linear"}, {"offload", "1"}});
    uint32_t bits[2] = {9, 9};
    CHECK(few.p.device->supports_op(few.handle, g.get(), bits) == TN_OK);
    CHECK(bits[0] == 0);
    g.nodes.clear();
    const uint32_t w = g.value(tensor({4, 3}, TN_TYPE_ID_F32, 0, TN_VALUE_WEIGHT)), z = g.value(tensor({2, 4}));
    g.node(TN_OP_LINEAR, {a, w}, {z});
    CHECK(few.p.device->supports_op(few.handle, g.get(), bits) == TN_OK);
    CHECK(bits[0] == (TN_SUPPORT_YES | TN_SUPPORT_OFFLOAD));
}

}  // namespace abi_test
