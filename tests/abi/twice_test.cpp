// The plugin that was built out of tree: host memory, import, a standard op taken over, an op of its own.
#include <cmath>

#include "host.h"

namespace abi_test {
namespace {

const Library &twice_library() {
    static const Library library(TENON_TEST_TWICE_PLUGIN);
    return library;
}

struct Fixture {
    Host host;
    Plugin plugin{twice_library(), host};
    OpenDevice device{plugin, host.adapters.at("twice:0")};
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "host memory: an address, the host's allocator, import without a write (D24)") {
    const int64_t before = host.allocated;
    tn_buffer own = device.alloc(100), imported = nullptr;
    CHECK(host.allocated == before + 100);
    auto info = make<tn_buffer_info>(TN_SIZE_BUFFER_INFO);
    CHECK(device.p.buffer->info(own, &info) == TN_OK);
    CHECK(info.base != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(info.base) % 32 == 0);

    alignas(32) float memory[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const auto &types = *device.p.buffer_type;
    CHECK(types.import_host(device.type, &memory[1], 16, 0, &imported) == TN_UNSUPPORTED);
    CHECK(types.import_host(device.type, memory, 32, 2, &imported) == TN_INVALID_ARGUMENT);
    CHECK(types.import_host(device.type, memory, 32, 0, &imported) == TN_OK);
    const tn_value t = tensor({8});
    float back[8] = {};
    CHECK(device.p.buffer->get(imported, &t, 4, back, 8) == TN_OK);
    CHECK(back[0] == 2);
    CHECK(device.p.buffer->set(imported, &t, 0, back, 4) == TN_DENIED);
    CHECK(device.p.buffer->clear(imported, 0) == TN_DENIED);
    CHECK(device.p.buffer->copy(own, &t, imported, &t) == TN_OK);
    CHECK(device.p.buffer->get(own, &t, 28, back, 4) == TN_OK);
    CHECK(back[0] == 8);
    device.p.buffer->destroy(imported);
    CHECK(types.import_host(device.type, memory, 32, 1, &imported) == TN_OK);
    CHECK(device.p.buffer->fill(imported, &t, 0, 4, 0) == TN_OK);
    CHECK(memory[0] == 0);
    device.p.buffer->destroy(imported);
    device.p.buffer->destroy(own);
    CHECK(host.allocated == before);
    CHECK(types.alloc(device.type, uint64_t{1} << 50, TN_USAGE_ANY, &own) == TN_OUT_OF_MEMORY);
}

TEST_CASE_FIXTURE(Fixture, "the op of its own: shape inference and decomposition, without a device") {
    const tn_op_info &op = host.ops.at("twice.twice");
    CHECK(op.version == 1);
    CHECK(op.output_count == 1);
    GraphBuilder g;
    const uint32_t x = g.value(tensor({2, 5}));
    auto unset = make<tn_value>(TN_SIZE_VALUE);  // as the host has it before inference: nothing filled in
    const uint32_t y = g.value(unset);
    g.node(TN_OP_VENDOR_FIRST, {x}, {y});
    auto inferred = make<tn_value>(TN_SIZE_VALUE);
    REQUIRE_MESSAGE(op.infer(op.ctx, g.get(), &g.nodes[0], sizeof inferred, &inferred) == TN_OK, last_error());
    CHECK(inferred.rank == 2);
    CHECK(inferred.shape[1] == 5);
    inferred.struct_size = TN_V1_VALUE - 8;
    CHECK(op.infer(op.ctx, g.get(), &g.nodes[0], sizeof inferred, &inferred) == TN_INVALID_ARGUMENT);

    auto sink = make<tn_graph_sink>(TN_SIZE_GRAPH_SINK);
    std::vector<uint32_t> seen;
    sink.ctx = &seen;
    sink.node_add = [](void *ctx, const tn_node *n) -> tn_status {
        *static_cast<std::vector<uint32_t> *>(ctx) = {n->op, n->inputs[0], n->inputs[1], n->outputs[0]};
        return TN_OK;
    };
    CHECK(op.decompose(op.ctx, g.get(), &g.nodes[0], &sink) == TN_OK);
    CHECK(seen == std::vector<uint32_t>{TN_OP_ADD, x, x, y});
    sink.node_add = [](void *, const tn_node *) -> tn_status { return TN_OUT_OF_MEMORY; };
    CHECK(op.decompose(op.ctx, g.get(), &g.nodes[0], &sink) == TN_OUT_OF_MEMORY);
}

TEST_CASE_FIXTURE(Fixture, "runs rms_norm and its own op on foreign host memory") {
    GraphBuilder g;
    auto params = make<tn_params_norm>(TN_SIZE_PARAMS_NORM);
    params.eps = 0;
    const uint32_t x = g.value(tensor({2, 2}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT)), n = g.value(tensor({2, 2}));
    const uint32_t y = g.value(tensor({2, 2}, TN_TYPE_ID_F32, 0, TN_VALUE_OBSERVED));
    g.node(TN_OP_RMS_NORM, {x}, {n}, &params);
    g.node(TN_OP_VENDOR_FIRST, {n}, {y});
    tn_plan plan = nullptr;
    REQUIRE_MESSAGE(device.p.plan->prepare(device.handle, g.get(), &plan) == TN_OK, last_error());
    float memory[12] = {3, 4, 6, 8};
    tn_place values[3], scratch[2];
    for (tn_place &place : scratch) place = make<tn_place>(TN_SIZE_PLACE), place.binding = TN_NONE;
    for (uint64_t i = 0; i < 3; ++i) values[i] = make<tn_place>(TN_SIZE_PLACE), values[i].offset = 16 * i;
    auto placement = make<tn_placement>(TN_SIZE_PLACEMENT);
    placement.values = values, placement.value_count = 3, placement.value_stride = sizeof(tn_place);
    placement.scratch = scratch, placement.scratch_count = 2, placement.scratch_stride = sizeof(tn_place);
    placement.binding_count = 1;
    CHECK(device.p.plan->place(plan, &placement) == TN_OK);
    auto binding = make<tn_binding>(TN_SIZE_BINDING);
    auto bind = make<tn_bind>(TN_SIZE_BIND);
    bind.bindings = &binding, bind.binding_count = 1, bind.binding_stride = sizeof binding, bind.set = 5000;
    binding.bytes = sizeof memory;
    CHECK(device.p.plan->bind(plan, &bind) == TN_INVALID_ARGUMENT);  // neither buffer nor base
    binding.base = reinterpret_cast<char *>(memory) + 2, binding.bytes = 44;
    CHECK(device.p.plan->bind(plan, &bind) == TN_INVALID_ARGUMENT);  // floats at odd addresses, and too short
    binding.base = memory, binding.bytes = sizeof memory;
    CHECK(device.p.plan->bind(plan, &bind) == TN_OK);
    tn_stream stream = device.stream();
    auto run = make<tn_run>(TN_SIZE_RUN);
    run.set = 5000;
    CHECK(device.p.plan->run(plan, stream, &run) == TN_OK);
    CHECK(device.p.stream->synchronize(stream, TN_FOREVER) == TN_OK);
    const float rms = std::sqrt(12.5f);
    for (int i = 0; i < 4; ++i) CHECK(memory[8 + i] == doctest::Approx(2 * (i % 2 == 0 ? 3 : 4) / rms));
    device.p.stream->destroy(stream);
    device.p.plan->destroy(plan);
}

TEST_CASE_FIXTURE(Fixture, "says no to all else") {
    GraphBuilder g;
    const uint32_t x = g.value(tensor({2, 2})), y = g.value(tensor({2, 2}));
    g.node(TN_OP_ADD, {x, x}, {y});
    uint32_t bits = 9;
    CHECK(device.p.device->supports_op(device.handle, g.get(), &bits) == TN_OK);
    CHECK(bits == 0);
}

}  // namespace abi_test
