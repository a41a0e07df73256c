// The plugin through its C tables, driven by a small host: load, open, options, plans with the fused group,
// cancellation.
#include "plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <random>

#include "testing/harness.h"

namespace tenon::cpu {
namespace {

// The least host that a plugin can be loaded into. Counts what it gave out.
struct SmallHost {
    std::string error_text;
    std::map<std::string, std::string> options;
    std::atomic<int64_t> allocated{0};
    std::atomic<int> asked{0};       // how often the cancel token was
    std::atomic<int> cancel_at{-1};  // answer "stop" from that question on
    tn_adapter adapter = nullptr;
    tn_host table{};
    tn_registrar registrar{};
    const tn_plugin *plugin = nullptr;
    tn_instance instance = nullptr;
    tn_device device = nullptr;

    static SmallHost &self(void *ctx) { return *static_cast<SmallHost *>(ctx); }

    SmallHost() {
        table.struct_size = TN_SIZE_HOST;
        table.abi = {TN_ABI_MINOR_MIN, TN_ABI_MINOR_MAX};
        table.ctx = this;
        table.name = "test";
        table.error = [](void *c, tn_status, const char *text) { self(c).error_text = text; };
        table.log = [](void *, uint32_t, const char *) {};
        table.alloc = [](void *c, uint64_t bytes, uint64_t alignment, void **out) -> tn_status {
            self(c).allocated += int64_t(bytes);
            *out = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
            return *out != nullptr ? TN_OK : TN_OUT_OF_MEMORY;
        };
        table.dealloc = [](void *c, void *ptr, uint64_t bytes, uint64_t) {
            self(c).allocated -= int64_t(bytes);
            std::free(ptr);
        };
        table.option = [](void *c, const char *key, uint64_t *io_bytes, char *out) -> tn_status {
            const auto found = self(c).options.find(key);
            if (found == self(c).options.end()) return TN_NOT_FOUND;
            const uint64_t need = found->second.size() + 1, room = *io_bytes;
            *io_bytes = need;
            if (out == nullptr) return TN_OK;
            if (room < need) return TN_TOO_SMALL;
            std::memcpy(out, found->second.c_str(), need);
            return TN_OK;
        };
        table.cancelled = [](void *c, uint64_t, uint32_t *out) -> tn_status {
            const int at = self(c).cancel_at, now = self(c).asked++;
            *out = at >= 0 && now >= at;
            return TN_OK;
        };
        table.changed = [](void *, uint32_t, const void *) {};
        table.extension = [](void *, const char *, const void **) -> tn_status { return TN_NOT_FOUND; };
        table.trace_span = [](void *, const char *, const char *, uint64_t, uint64_t) {};
        registrar.struct_size = TN_SIZE_REGISTRAR;
        registrar.ctx = this;
        registrar.adapter_add = [](void *c, tn_adapter adapter, const tn_adapter_info *info) -> tn_status {
            CHECK(std::string(info->name) == "cpu");
            CHECK(info->kind == TN_KIND_CPU);
            CHECK(std::strlen(info->description) > 0);
            self(c).adapter = adapter;
            return TN_OK;
        };
        registrar.adapter_withdraw = [](void *, tn_adapter) -> tn_status { return TN_OK; };
        registrar.buffer_type_add = [](void *, tn_buffer_type, const tn_buffer_type_info *) -> tn_status {
            return TN_OK;
        };
        registrar.buffer_type_withdraw = [](void *, tn_buffer_type) -> tn_status { return TN_OK; };
        registrar.op_add = [](void *, const tn_op_info *, uint32_t *) -> tn_status { return TN_OK; };
        registrar.op_withdraw = [](void *, uint32_t) -> tn_status { return TN_OK; };
        REQUIRE(tn_plugin_query_v1(&table, &plugin) == TN_OK);
        REQUIRE(plugin->load(&table, &registrar, 0, &instance) == TN_OK);
        REQUIRE(adapter != nullptr);
    }

    ~SmallHost() {
        if (device != nullptr) plugin->device->close(device);
        CHECK(plugin->unload(instance) == TN_OK);
        CHECK(allocated == 0);
    }

    tn_status open(std::vector<std::pair<const char *, const char *>> list, tn_device *out) {
        std::vector<tn_option> items;
        for (auto [key, value] : list) items.push_back({TN_SIZE_OPTION, nullptr, key, value});
        const tn_open params{TN_SIZE_OPEN, nullptr, items.data(), items.size(), sizeof(tn_option)};
        return plugin->adapter->open(adapter, &params, out);
    }
    std::string option(const char *key) {
        uint64_t bytes = 0;
        REQUIRE(plugin->device->option_get(device, key, &bytes, nullptr) == TN_OK);
        std::string text(bytes, 0);
        REQUIRE(plugin->device->option_get(device, key, &bytes, text.data()) == TN_OK);
        text.resize(bytes - 1);
        return text;
    }
};

// A graph under construction, and its run: every value in a buffer of its own, scratch too.
struct SmallGraph {
    std::vector<tn_value> values;
    std::vector<tn_node> nodes;
    std::vector<std::unique_ptr<std::vector<uint32_t>>> operands;
    tn_params_norm norm = testing::params<tn_params_norm>();

    SmallGraph() { norm.eps = 1e-5f; }

    uint32_t value(uint32_t type, std::vector<int64_t> shape, uint32_t flags = 0, uint32_t view_of = TN_NONE) {
        tn_value v{};
        v.struct_size = TN_SIZE_VALUE;
        v.type = type, v.rank = uint32_t(shape.size()), v.flags = flags, v.view_of = view_of, v.buffer_type = TN_NONE;
        int64_t step = block_of(type).bytes;
        std::fill(v.shape, v.shape + TN_MAX_RANK, 1);
        for (size_t i = shape.size(); i-- > 0;) {
            v.shape[i] = shape[i];
            v.stride_bytes[i] = step;
            step *= i + 1 == shape.size() ? shape[i] / block_of(type).elements : shape[i];
        }
        values.push_back(v);
        return uint32_t(values.size() - 1);
    }
    void node(uint32_t op, std::vector<uint32_t> in, std::vector<uint32_t> out) {
        tn_node n{};
        n.struct_size = TN_SIZE_NODE;
        n.op = op;
        n.params = op == TN_OP_RMS_NORM ? &norm : nullptr;
        for (auto &list : {in, out}) operands.push_back(std::make_unique<std::vector<uint32_t>>(list));
        n.inputs = operands[operands.size() - 2]->data(), n.input_count = uint32_t(in.size());
        n.outputs = operands.back()->data(), n.output_count = uint32_t(out.size());
        nodes.push_back(n);
    }
    tn_graph table() const {
        return {TN_SIZE_GRAPH,
                nullptr,
                values.data(),
                values.size(),
                sizeof(tn_value),
                nodes.data(),
                nodes.size(),
                sizeof(tn_node),
                nullptr,
                0,
                0};
    }
};

// x -> norm -> (q, k, v products) -> ...: with a node between the products, and an add that ends the block.
struct Block {
    SmallGraph g;
    uint32_t x, w, n, wq, wk, wv, q, k, v, act, y;
    explicit Block(uint32_t norm_flags = 0) {
        const uint32_t weight = TN_VALUE_WEIGHT;
        x = g.value(TN_TYPE_ID_F32, {3, 64}, TN_VALUE_INPUT);
        w = g.value(TN_TYPE_ID_F32, {64}, weight);
        n = g.value(TN_TYPE_ID_F32, {3, 64}, norm_flags);
        wq = g.value(TN_TYPE_ID_Q4_1, {64, 64}, weight);
        wk = g.value(TN_TYPE_ID_Q8_0, {64, 64}, weight);
        wv = g.value(TN_TYPE_ID_F32, {64, 64}, weight);
        q = g.value(TN_TYPE_ID_F32, {3, 64});
        k = g.value(TN_TYPE_ID_F32, {3, 64});
        v = g.value(TN_TYPE_ID_F32, {3, 64}, TN_VALUE_OBSERVED);
        act = g.value(TN_TYPE_ID_F32, {3, 64});
        y = g.value(TN_TYPE_ID_F32, {3, 64}, TN_VALUE_OBSERVED);
        g.node(TN_OP_RMS_NORM, {x, w}, {n});
        g.node(TN_OP_LINEAR, {n, wq}, {q});
        g.node(TN_OP_SILU, {q}, {act});
        g.node(TN_OP_LINEAR, {n, wk}, {k});
        g.node(TN_OP_LINEAR, {n, wv}, {v});
        g.node(TN_OP_ADD, {act, k}, {y});
    }
};

struct Prepared {
    SmallHost &host;
    tn_plan plan = nullptr;
    std::vector<tn_group> groups;
    std::vector<uint32_t> node_groups, unstored;
    std::vector<tn_in_place> in_place;

    Prepared(SmallHost &h, const SmallGraph &g) : host(h) {
        const tn_graph graph = g.table();
        const tn_plan_api &api = *host.plugin->plan;
        REQUIRE_MESSAGE(api.prepare(host.device, &graph, &plan) == TN_OK, host.error_text);
        uint64_t count = 0;
        REQUIRE(api.groups(plan, &count, sizeof(tn_group), nullptr) == TN_OK);
        groups.resize(count, {TN_SIZE_GROUP, nullptr, 0});
        REQUIRE(api.groups(plan, &count, sizeof(tn_group), groups.data()) == TN_OK);
        REQUIRE(api.node_groups(plan, &count, nullptr) == TN_OK);
        node_groups.resize(count);
        REQUIRE(api.node_groups(plan, &count, node_groups.data()) == TN_OK);
        REQUIRE(api.unstored(plan, &count, nullptr) == TN_OK);
        unstored.resize(count);
        REQUIRE(api.unstored(plan, &count, unstored.data()) == TN_OK);
        REQUIRE(api.in_place(plan, &count, sizeof(tn_in_place), nullptr) == TN_OK);
        in_place.resize(count, {TN_SIZE_IN_PLACE, nullptr, 0, 0});
        REQUIRE(api.in_place(plan, &count, sizeof(tn_in_place), in_place.data()) == TN_OK);
    }
    ~Prepared() { host.plugin->plan->destroy(plan); }

    // All values one after the other in one block of memory, then scratch; filled by the caller between bind and run.
    std::vector<std::byte> memory;
    std::vector<uint64_t> offsets;
    void bind(const SmallGraph &g) {
        std::vector<tn_place> places, scratch;
        uint64_t end = 0;
        const auto next = [&](uint64_t bytes) {
            const uint64_t at = end;
            end += (bytes + 63) / 64 * 64;
            return at;
        };
        for (size_t i = 0; i < g.values.size(); ++i) {
            const tn_value &v = g.values[i];
            const bool stored = std::find(unstored.begin(), unstored.end(), i) == unstored.end();
            offsets.push_back(next(stored ? uint64_t(v.shape[0] * v.stride_bytes[0]) : 0));
            places.push_back({TN_SIZE_PLACE, nullptr, offsets.back(), stored ? 0 : TN_NONE, 0});
        }
        for (const tn_group &group : groups)
            scratch.push_back({TN_SIZE_PLACE, nullptr, next(group.scratch_bytes), 0, 0});
        const tn_placement placement{TN_SIZE_PLACEMENT, nullptr,          places.data(),
                                     places.size(),     sizeof(tn_place), scratch.data(),
                                     scratch.size(),    sizeof(tn_place), 1};
        REQUIRE_MESSAGE(host.plugin->plan->place(plan, &placement) == TN_OK, host.error_text);
        memory.assign(end + 64, std::byte(0xa5));
        const tn_binding binding{TN_SIZE_BINDING, nullptr, nullptr, base(), end};
        const tn_bind bind{TN_SIZE_BIND, nullptr, &binding, 1, sizeof(tn_binding), nullptr, 0, 0};
        REQUIRE_MESSAGE(host.plugin->plan->bind(plan, &bind) == TN_OK, host.error_text);
    }
    std::byte *base() { return memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64; }
    std::byte *at(uint32_t value) { return base() + offsets[value]; }
    tn_status run(uint64_t token = 0) {
        tn_stream stream = nullptr;
        REQUIRE(host.plugin->stream->create(host.device, &stream) == TN_OK);
        const tn_run run{TN_SIZE_RUN, nullptr, token, 0, 0};
        REQUIRE_MESSAGE(host.plugin->plan->run(plan, stream, &run) == TN_OK, host.error_text);
        const tn_status status = host.plugin->stream->synchronize(stream, TN_FOREVER);
        host.plugin->stream->destroy(stream);
        return status;
    }
};

void fill(Prepared &p, const Block &b) {
    testing::Random random(51);
    for (uint32_t v : {b.x, b.w, b.wq, b.wk, b.wv}) {
        const tn_value &value = b.g.values[v];
        const Operand o = value.rank == 1 ? Operand::dense(value.type, {value.shape[0]})
                                          : Operand::dense(value.type, {value.shape[0], value.shape[1]});
        const testing::Bytes bytes = random.weights(o, 0);
        std::memcpy(p.at(v), bytes.data(), bytes.size());
    }
}

TEST_CASE("plan: a norm and all the products that read it are one group, whose result is the same bits") {
    for (const char *isa : {"reference", "auto"}) {
        SmallHost host;
        REQUIRE_MESSAGE(host.open({{"threads", "3"}, {"isa", isa}}, &host.device) == TN_OK, host.error_text);
        const Block fused, split(TN_VALUE_OBSERVED);
        Prepared one(host, fused.g), many(host, split.g);
        CHECK(one.node_groups == std::vector<uint32_t>{0, 0, 1, 0, 0, 2});
        CHECK(one.groups.size() == 3);
        CHECK(one.groups[0].scratch_bytes >= 3 * 64 * 4);
        CHECK(one.unstored == std::vector<uint32_t>{fused.n});
        CHECK(many.node_groups == std::vector<uint32_t>{0, 1, 2, 3, 4, 5});
        CHECK(many.unstored.empty());
        // q dies in silu, act in add; the norm's input is the host's.
        REQUIRE(one.in_place.size() == 2);
        CHECK(one.in_place[0].output == fused.act);
        CHECK(one.in_place[0].input == fused.q);
        CHECK(one.in_place[1].output == fused.y);
        one.bind(fused.g);
        many.bind(split.g);
        fill(one, fused);
        fill(many, split);
        REQUIRE(one.run() == TN_OK);
        REQUIRE(many.run() == TN_OK);
        CHECK(std::memcmp(one.at(fused.y), many.at(split.y), 3 * 64 * 4) == 0);
        CHECK(std::memcmp(one.at(fused.v), many.at(split.v), 3 * 64 * 4) == 0);
        const std::vector<std::byte> before(one.at(fused.y), one.at(fused.y) + 3 * 64 * 4);
        for (const char *threads : {"1", "2", "7"}) {
            REQUIRE(host.plugin->device->option_set(host.device, "threads", threads) == TN_OK);
            REQUIRE(one.run() == TN_OK);
            CHECK(std::memcmp(one.at(fused.y), before.data(), before.size()) == 0);
        }
    }
}

TEST_CASE("plan: no fusion where somebody else needs the norm's output, or a weight is made in between") {
    SmallHost host;
    REQUIRE(host.open({}, &host.device) == TN_OK);
    {
        Block b;  // read by an add as well
        const uint32_t z = b.g.value(TN_TYPE_ID_F32, {3, 64}, TN_VALUE_OBSERVED);
        b.g.node(TN_OP_ADD, {b.n, b.y}, {z});
        CHECK(Prepared(host, b.g).unstored.empty());
    }
    {
        Block b;  // seen through a view
        const uint32_t view = b.g.value(TN_TYPE_ID_F32, {192}, 0, b.n);
        const uint32_t z = b.g.value(TN_TYPE_ID_F32, {192}, TN_VALUE_OBSERVED);
        b.g.node(TN_OP_NEG, {view}, {z});
        CHECK(Prepared(host, b.g).unstored.empty());
    }
    {
        SmallGraph g;  // the product's weight is computed after the norm
        const uint32_t x = g.value(TN_TYPE_ID_F32, {2, 32}, TN_VALUE_INPUT), n = g.value(TN_TYPE_ID_F32, {2, 32});
        const uint32_t w = g.value(TN_TYPE_ID_F32, {4, 32}, TN_VALUE_INPUT), w2 = g.value(TN_TYPE_ID_F32, {4, 32});
        const uint32_t y = g.value(TN_TYPE_ID_F32, {2, 4}, TN_VALUE_OBSERVED);
        g.node(TN_OP_RMS_NORM, {x}, {n});
        g.node(TN_OP_NEG, {w}, {w2});
        g.node(TN_OP_LINEAR, {n, w2}, {y});
        const Prepared p(host, g);
        CHECK(p.unstored.empty());
        CHECK(p.groups.size() == 3);
        CHECK(p.in_place.empty());  // w is the host's
    }
}

TEST_CASE("plan: no in-place offer for an input that is broadcast, viewed, flagged or read later") {
    SmallHost host;
    REQUIRE(host.open({}, &host.device) == TN_OK);
    const auto offers = [&](const std::function<void(SmallGraph &, uint32_t middle)> &more, bool broadcast = false) {
        SmallGraph g;
        const uint32_t x = g.value(TN_TYPE_ID_F32, {4, 8}, TN_VALUE_INPUT), middle = g.value(TN_TYPE_ID_F32, {4, 8});
        const uint32_t y = g.value(TN_TYPE_ID_F32, {4, 8}, TN_VALUE_OBSERVED);
        g.node(TN_OP_NEG, {x}, {middle});
        uint32_t from = middle;
        if (broadcast) {
            from = g.value(TN_TYPE_ID_F32, {4, 8}, 0, middle);
            g.values[from].stride_bytes[0] = 0;
        }
        g.node(TN_OP_EXP, {from}, {y});
        more(g, middle);
        return Prepared(host, g).in_place.size();
    };
    CHECK(offers([](SmallGraph &, uint32_t) {}) == 1);
    CHECK(offers([](SmallGraph &, uint32_t) {}, true) == 0);
    CHECK(offers([](SmallGraph &g, uint32_t middle) { g.values[middle].flags = TN_VALUE_OBSERVED; }) == 0);
    CHECK(offers([](SmallGraph &g, uint32_t middle) { g.value(TN_TYPE_ID_F32, {32}, 0, middle); }) == 0);
    const auto later = [](SmallGraph &g, uint32_t middle) {
        const uint32_t z = g.value(TN_TYPE_ID_F32, {4, 1}, TN_VALUE_OBSERVED);
        g.node(TN_OP_SUM, {middle}, {z});
    };
    CHECK(offers(later) == 0);
}

TEST_CASE("plan: a raised token stops the run between groups; the plan can run again") {
    SmallHost host;
    REQUIRE(host.open({{"threads", "2"}}, &host.device) == TN_OK);
    const Block b;
    Prepared p(host, b.g);
    p.bind(b.g);
    fill(p, b);
    REQUIRE(p.run(1) == TN_OK);
    const int questions = host.asked;
    CHECK(questions >= 3);  // before each group
    // Many times over: threads that leave at different barriers would wait for each other for ever.
    for (int again = 0; again < 50 * questions; ++again) {
        host.asked = 0;
        host.cancel_at = again % questions;
        std::memset(p.at(b.y), 0, 3 * 64 * 4);
        CHECK(p.run(1) == TN_CANCELLED);
        CHECK(*reinterpret_cast<float *>(p.at(b.y)) == 0);  // the last group didn't run
    }
    host.cancel_at = -1;
    CHECK(p.run(1) == TN_OK);
    CHECK(*reinterpret_cast<float *>(p.at(b.y)) != 0);
}

TEST_CASE("device: options are read, checked and changeable; what isn't known is refused with its name") {
    SmallHost host;
    host.options["threads"] = "5";
    REQUIRE(host.open({{"isa", "reference"}}, &host.device) == TN_OK);
    CHECK(host.option("threads") == "5");
    CHECK(host.option("isa") == "reference");
    const tn_device_api &api = *host.plugin->device;
    CHECK(api.option_set(host.device, "threads", "2") == TN_OK);
    CHECK(host.option("threads") == "2");
    CHECK(api.option_set(host.device, "threads", "0") == TN_INVALID_ARGUMENT);
    CHECK(api.option_set(host.device, "threads", "two") == TN_INVALID_ARGUMENT);
    CHECK(api.option_set(host.device, "isa", "avx2") == TN_UNSUPPORTED);
    CHECK(api.option_set(host.device, "speed", "2") == TN_NOT_FOUND);
    CHECK(host.option("threads") == "2");
    tn_device other = nullptr;
    CHECK(host.open({{"isa", "avx9"}}, &other) == TN_INVALID_ARGUMENT);
    CHECK(host.error_text.find("avx9") != std::string::npos);
    CHECK(host.open({{"thread", "2"}}, &other) == TN_INVALID_ARGUMENT);
    CHECK(host.error_text.find("thread") != std::string::npos);
    CHECK(host.open({{"threads", "100000"}}, &other) == TN_INVALID_ARGUMENT);
    uint64_t total = 0, free = 0;
    CHECK(host.plugin->adapter->memory(host.adapter, &total, &free) == TN_OK);
    CHECK(total >= free);
    CHECK(free > 0);
}

TEST_CASE("device: read-only memory at a multiple of 32 is imported as it is, and never written") {
    SmallHost host;
    REQUIRE(host.open({}, &host.device) == TN_OK);
    uint64_t count = 1;
    tn_buffer_type type = nullptr;
    REQUIRE(host.plugin->device->buffer_types(host.device, &count, &type) == TN_OK);
    alignas(64) static const uint32_t words[64] = {1, 2, 3};
    tn_buffer buffer = nullptr;
    auto *from = const_cast<uint32_t *>(words);
    REQUIRE(host.plugin->buffer_type->import_host(type, from + 8, 128, 0, &buffer) == TN_OK);
    tn_buffer_info info{TN_SIZE_BUFFER_INFO, nullptr, nullptr, 0};
    CHECK(host.plugin->buffer->info(buffer, &info) == TN_OK);
    CHECK(info.base == from + 8);
    CHECK(host.plugin->buffer->clear(buffer, 0) == TN_DENIED);
    host.plugin->buffer->destroy(buffer);
    CHECK(host.plugin->buffer_type->import_host(type, from + 1, 128, 0, &buffer) == TN_UNSUPPORTED);
}

TEST_CASE("device: an op without a kernel, or memory that the CPU can't reach, is refused with the reason") {
    SmallHost host;
    REQUIRE(host.open({}, &host.device) == TN_OK);
    SmallGraph g;
    const uint32_t x = g.value(TN_TYPE_ID_F32, {4}, TN_VALUE_INPUT),
                   y = g.value(TN_TYPE_ID_F32, {4}, TN_VALUE_OBSERVED);
    g.node(TN_OP_NEG, {x}, {y});
    g.node(0x80000001u, {x}, {y});
    const auto answers = [&](const tn_graph &graph) {
        std::vector<uint32_t> out(graph.node_count);
        REQUIRE(host.plugin->device->supports_op(host.device, &graph, out.data()) == TN_OK);
        return out;
    };
    tn_graph graph = g.table();
    CHECK(answers(graph) == std::vector<uint32_t>{TN_SUPPORT_YES, 0});
    tn_buffer_type_info far{};
    far.struct_size = TN_SIZE_BUFFER_TYPE_INFO;
    far.name = "gpu.memory", far.memory = TN_MEMORY_DEVICE, far.alignment = 256;
    g.values[x].buffer_type = 0;
    graph = g.table();
    graph.buffer_types = &far, graph.buffer_type_count = 1, graph.buffer_type_stride = sizeof far;
    CHECK(answers(graph) == std::vector<uint32_t>{0, 0});
    uint64_t bytes = 0;
    REQUIRE(host.plugin->device->support_reason(host.device, &graph, 0, &bytes, nullptr) == TN_OK);
    std::string why(bytes, 0);
    REQUIRE(host.plugin->device->support_reason(host.device, &graph, 0, &bytes, why.data()) == TN_OK);
    CHECK(why.find("gpu.memory") != std::string::npos);
    uint32_t usable = 1;
    CHECK(host.plugin->device->supports_buffer_type(host.device, &far, &usable) == TN_OK);
    CHECK(usable == 0);
}

}  // namespace
}  // namespace tenon::cpu
