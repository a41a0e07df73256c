#include "tenon/device.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "registry/alloc_count.h"
#include "registry/fixture_folder.h"
#include "tenon/ops.h"

using namespace tenon;
using namespace tenon::fixture;

namespace {

struct Opened {
    TempDir dir;
    LogLines lines;
    std::shared_ptr<Registry> registry;
    std::shared_ptr<Device> device;

    explicit Opened(const std::string &options = "", const std::string &fixture = "good") {
        add_plugin(dir.path(), fixture);
        registry = registry_of(only({dir.path()}, lines));
        auto devices = registry->open(fixture + options);
        REQUIRE_MESSAGE(devices.ok(), devices.status().message());
        device = (*devices)[0];
    }
};

tn_value tensor(int64_t elements, uint64_t offset = 0, const char *name = "x") {
    tn_value v{};
    v.struct_size = TN_SIZE_VALUE;
    v.type = TN_TYPE_ID_F32;
    v.rank = 1;
    std::fill_n(v.shape, TN_MAX_RANK, 1);
    v.shape[0] = elements;
    v.stride_bytes[0] = 4;
    v.view_of = v.buffer_type = TN_NONE;
    v.offset = offset;
    v.name = name;
    return v;
}

// t = a + b; y = t + a, of four floats each.
struct TwoAdds {
    std::array<tn_value, 4> values{tensor(4), tensor(4), tensor(4), tensor(4)};
    std::array<uint32_t, 6> operands{0, 1, 2, 2, 0, 3};
    std::array<tn_node, 2> nodes{};
    tn_graph graph{};

    TwoAdds() {
        values[0].flags = values[1].flags = TN_VALUE_INPUT;
        values[3].flags = TN_VALUE_OBSERVED;
        for (size_t i = 0; i < 2; ++i) {
            nodes[i].struct_size = TN_SIZE_NODE;
            nodes[i].op = TN_OP_ADD;
            nodes[i].inputs = &operands[3 * i], nodes[i].input_count = 2;
            nodes[i].outputs = &operands[3 * i + 2], nodes[i].output_count = 1;
        }
        graph.struct_size = TN_SIZE_GRAPH;
        graph.values = values.data(), graph.value_count = 4, graph.value_stride = sizeof(tn_value);
        graph.nodes = nodes.data(), graph.node_count = 2, graph.node_stride = sizeof(tn_node);
    }
};

// Places the four values one after the other in one buffer and binds it as set 0.
void place_and_bind(Plan &plan, Buffer &buffer) {
    std::array<tn_place, 4> places{};
    for (uint32_t i = 0; i < 4; ++i) places[i] = {TN_SIZE_PLACE, nullptr, 64 * i, 0, 0};
    std::vector<tn_place> scratch(plan.group_scratch().size(), tn_place{TN_SIZE_PLACE, nullptr, 0, TN_NONE, 0});
    tn_placement placement{};
    placement.struct_size = TN_SIZE_PLACEMENT;
    placement.values = places.data(), placement.value_count = 4, placement.value_stride = sizeof(tn_place);
    placement.scratch = scratch.data(), placement.scratch_count = scratch.size(),
    placement.scratch_stride = sizeof(tn_place);
    placement.binding_count = 1;
    REQUIRE(plan.place(placement).ok());
    CHECK(plan.place(placement).code() == Code::invalid_state);
    tn_binding binding{TN_SIZE_BINDING, nullptr, buffer.handle(), buffer.base(), buffer.bytes()};
    tn_bind bind{};
    bind.struct_size = TN_SIZE_BIND;
    bind.bindings = &binding, bind.binding_count = 1, bind.binding_stride = sizeof binding;
    REQUIRE(plan.bind(bind).ok());
}

}  // namespace

TEST_CASE("device: options, their errors, and the generation that schedules depend on") {
    Opened o;
    Device &d = *o.device;
    const uint64_t before = d.generation();
    CHECK(d.set_option("threads", "4").ok());
    CHECK(d.generation() > before);
    CHECK(*d.get_option("threads") == "4");
    CHECK(*d.get_option("isa") == "plain");
    const uint64_t then = d.generation();
    Status read_only = d.set_option("isa", "x");
    CHECK(read_only.code() == Code::unsupported);
    CHECK(read_only.message() == "good:0: option isa=x: good: isa is read only");
    CHECK(d.get_option("none").status().code() == Code::not_found);
    CHECK(d.set_option("none", "x").code() == Code::invalid_argument);
    CHECK(d.set_option("status", "4711").code() == Code::internal);
    CHECK_HAS(d.set_option("status", "5").message(), "as you wish");
    CHECK_HAS(d.set_option("silent", "5").message(),
              "good: device.option_set answered 'out of memory' and gave no reason");
    CHECK(d.generation() == then);
}

TEST_CASE("device: a withdrawn adapter loses its devices, which can still be freed") {
    Opened o;
    auto buffer = *o.device->default_buffer_type().alloc(64, Usage::any);
    const uint64_t before = o.device->generation();
    REQUIRE(o.device->set_option("withdraw", "1").ok());
    CHECK(o.device->lost());
    CHECK(o.device->generation() > before);
    CHECK(o.registry->adapters().empty());
    CHECK(Stream::create(o.device).status().code() == Code::device_lost);
    CHECK(Event::create(o.device).status().code() == Code::device_lost);
    CHECK(o.device->default_buffer_type().alloc(64, Usage::any).status().code() == Code::device_lost);
    CHECK(Plan::prepare(o.device, TwoAdds().graph).status().code() == Code::device_lost);
    CHECK_HAS(o.registry->open("good").status().message(), "no device 'good'");
    buffer.reset();
    o.device.reset();
    CHECK(o.registry->unload("good").ok());
}

TEST_CASE("device: the first device_lost is remembered") {
    Opened o;
    TwoAdds adds;
    CHECK(o.device->supports(adds.graph).ok());
    REQUIRE(o.device->set_option("lose", "1").ok());
    CHECK(!o.device->lost());
    const uint64_t before = o.device->generation();
    CHECK(o.device->supports(adds.graph).status().message() == "good: the device fell off the bus");
    CHECK(o.device->lost());
    CHECK(o.device->generation() == before + 1);
}

TEST_CASE("device: what it supports, and why not") {
    Opened o;
    TwoAdds adds;
    adds.nodes[1].op = TN_OP_MUL;
    auto support = o.device->supports(adds.graph);
    REQUIRE(support.ok());
    CHECK(*support == std::vector<uint32_t>{TN_SUPPORT_YES, 0});
    CHECK(*o.device->support_reason(adds.graph, 1) == "only add");
    CHECK(o.device->support_reason(adds.graph, 0).status().code() == Code::invalid_state);
    CHECK(*o.device->supports(o.device->default_buffer_type()));
}

TEST_CASE("buffer: memory moves, errors name type and tensor, what is optional falls back") {
    Opened o;
    auto types = o.device->buffer_types();
    REQUIRE(types.size() == 1);
    BufferType type = types[0];
    CHECK(type.name() == "good.host");
    CHECK(std::string(type.info().name) == "good.host");
    CHECK(type.is_host());
    CHECK(type.alignment() == 64);
    CHECK(type == o.device->default_buffer_type());
    CHECK(*type.tensor_bytes(tensor(4)) == 16);
    CHECK_HAS(type.tensor_bytes(tensor(4, 0, "shrunk")).status().message(), "tensor shrunk: the plugin counts 1 bytes");
    CHECK(type.alloc((1 << 20) + 1, Usage::any).status().code() == Code::out_of_memory);

    auto buffer = *type.alloc(256, Usage::weights);
    CHECK(buffer->bytes() == 256);
    REQUIRE(buffer->base());
    CHECK(buffer->set_usage(Usage::compute).ok());  // not offered: a hint
    CHECK(*buffer->init_tensor(tensor(4)) == 0);    // not offered: no cookies
    std::array<float, 4> in{1, 2, 3, 4}, out{};
    CHECK(buffer->set(tensor(4, 64), 0, in.data(), 16).ok());
    CHECK(std::memcmp(static_cast<char *>(buffer->base()) + 64, in.data(), 16) == 0);
    CHECK(buffer->fill(tensor(4, 64), 8, 8, 0).ok());
    CHECK(buffer->get(tensor(4, 64), 0, out.data(), 16).ok());
    CHECK(out == std::array<float, 4>{1, 2, 0, 0});
    Status beyond = buffer->set(tensor(4, 64, "blk.0.w"), 8, in.data(), 16);
    CHECK(beyond.code() == Code::invalid_argument);
    CHECK(beyond.message() == "good.host, tensor blk.0.w: good: the range is beyond tensor or buffer");
    CHECK(buffer->clear(0xff).ok());

    alignas(64) static std::array<float, 16> mine{};
    auto imported = type.import_host(mine.data(), sizeof mine, true);
    REQUIRE(imported.ok());
    CHECK((*imported)->base() == mine.data());
    CHECK(type.import_host(reinterpret_cast<char *>(mine.data()) + 4, 16, false).status().code() == Code::unsupported);
}

TEST_CASE("stream and event: no handle reaches a plugin or device that didn't make it") {
    Opened a, b("", "future");
    auto stream_a = *Stream::create(a.device), stream_b = *Stream::create(b.device);
    auto buffer_a = *a.device->default_buffer_type().alloc(64, Usage::any);
    auto buffer_b = *b.device->default_buffer_type().alloc(64, Usage::any);
    std::array<float, 4> data{};
    CHECK(stream_a->set(*buffer_b, tensor(4), 0, data.data(), 16).code() == Code::unsupported);
    CHECK(stream_a->copy(*buffer_a, tensor(4), *buffer_b, tensor(4)).code() == Code::unsupported);
    CHECK(stream_a->copy(*buffer_a, tensor(4), *buffer_a, tensor(4, 16)).code() == Code::unimplemented);
    auto event = *Event::create(a.device);
    CHECK(event->record(*stream_b).code() == Code::invalid_argument);
    CHECK(event->wait(*stream_b).code() == Code::invalid_argument);
    CHECK(event->record(*stream_a).ok());
    CHECK(event->synchronize(0).ok());
    auto plan = *Plan::prepare(a.device, TwoAdds().graph);
    CHECK(plan->run(*stream_b, 0, 0).code() == Code::invalid_argument);
}

TEST_CASE("plan: prepared, placed, bound, run; without allocating once it runs") {
    Opened o(":answers=fused");
    TwoAdds adds;
    auto plan = Plan::prepare(o.device, adds.graph);
    REQUIRE_MESSAGE(plan.ok(), plan.status().message());
    CHECK((*plan)->node_groups() == std::vector<uint32_t>{0, 0});
    CHECK((*plan)->group_scratch() == std::vector<uint64_t>{64});
    CHECK((*plan)->unstored() == std::vector<uint32_t>{2});
    CHECK((*plan)->in_place().empty());
    CHECK((*plan)->update(adds.graph).code() == Code::unimplemented);

    auto buffer = *o.device->default_buffer_type().alloc(256, Usage::compute);
    auto stream = *Stream::create(o.device);
    CHECK((*plan)->run(*stream, 0, 0).code() == Code::invalid_state);
    place_and_bind(**plan, *buffer);
    std::array<float, 4> a{1, 2, 3, 4}, b{10, 20, 30, 40}, y{};
    REQUIRE(buffer->set(tensor(4, 0), 0, a.data(), 16).ok());
    REQUIRE(buffer->set(tensor(4, 64), 0, b.data(), 16).ok());
    const uint64_t token = o.registry->new_cancel_token();
    uint64_t before = allocations_of_thread();
    bool ok = true;
    for (int i = 0; i < 10; ++i) ok = ok && (*plan)->run(*stream, 0, token).ok() && stream->synchronize().ok();
    CHECK(allocations_of_thread() == before);
    CHECK(ok);
    REQUIRE(stream->get(*buffer, tensor(4, 192), 0, y.data(), 16).ok());
    CHECK(y == std::array<float, 4>{12, 24, 36, 48});

    o.registry->raise_cancel(token);
    auto event = *Event::create(o.device);
    CHECK((*plan)->run(*stream, 0, token).ok());
    CHECK(event->record(*stream).ok());
    CHECK(stream->synchronize().code() == Code::cancelled);
    CHECK(event->synchronize().code() == Code::cancelled);
    o.registry->clear_cancel(token);
    CHECK((*plan)->run(*stream, 0, token).ok());
    CHECK(stream->synchronize().ok());

    REQUIRE(o.device->set_option("lose", "1").ok());
    CHECK((*plan)->run(*stream, 0, 0).code() == Code::device_lost);
    CHECK(o.device->lost());
}

TEST_CASE("plan: without answers every node is a group of its own") {
    Opened o(":answers=none");
    auto plan = Plan::prepare(o.device, TwoAdds().graph);
    REQUIRE_MESSAGE(plan.ok(), plan.status().message());
    CHECK((*plan)->node_groups() == std::vector<uint32_t>{0, 1});
    CHECK((*plan)->group_scratch() == std::vector<uint64_t>{0, 0});
    CHECK((*plan)->unstored().empty());
}

TEST_CASE("plan: wrong answers are found at prepare, with plugin and duty") {
    const std::pair<const char *, const char *> cases[] = {
        {"backwards", "plugin good: D34"},        {"few", "plugin good: D35"},   {"outside", "plugin good: D35"},
        {"unstored", "plugin good: D36"},         {"twice", "plugin good: D37"}, {"half", "plugin good: D34"},
        {"huge", "plugin good: the plugin lists"}};
    for (auto [answers, expected] : cases) {
        Opened o(std::string(":answers=") + answers);
        auto plan = Plan::prepare(o.device, TwoAdds().graph);
        CHECK(plan.status().code() == Code::internal);
        CHECK_HAS(plan.status().message(), expected);
        // The plan that the plugin had made is freed: nothing but the device lives.
        o.device.reset();
        CHECK(o.registry->unload("good").ok());
    }
    Opened o(":answers=offers");
    CHECK((*Plan::prepare(o.device, TwoAdds().graph))->in_place() ==
          std::vector<std::pair<uint32_t, uint32_t>>{{2, 0}});
    TwoAdds other;
    other.nodes[0].op = TN_OP_MUL;
    CHECK(Plan::prepare(o.device, other.graph).status().code() == Code::unsupported);
}

TEST_CASE("device: kinds have names") {
    CHECK(kind_name(DeviceKind::cpu) == "cpu");
    CHECK(kind_name(DeviceKind::gpu) == "gpu");
    CHECK(kind_name(DeviceKind::integrated) == "integrated");
    CHECK(kind_name(DeviceKind::accelerator) == "accelerator");
}
