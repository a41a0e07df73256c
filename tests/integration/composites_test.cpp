// Every composite twice: as the CPU plugin claims it, and as its decomposition runs on a mock device that knows
// primitives only. The two share no code, so that each is the other's witness.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "graph_runner.h"

using namespace tenon;
using namespace tenon::testing;

namespace {

void compare(const Graph &graph, const Data &data, const std::string &name, double limit = 1e-10) {
    CAPTURE(name);
    Runner cpu, mock;
    Status status = cpu.prepare(graph, "cpu:isa=reference", data);
    REQUIRE_MESSAGE(status.ok(), status.message());
    status = mock.prepare(graph, "mock:0,cpu", data, {Pin{".", "mock:0"}});
    REQUIRE_MESSAGE(status.ok(), status.message());
    for (const Segment &segment : mock.executable->schedule().segments()) CHECK(segment.device == 0);
    status = cpu.run(data);
    REQUIRE_MESSAGE(status.ok(), status.message());
    status = mock.run(data);
    REQUIRE_MESSAGE(status.ok(), status.message());
    for (size_t i = 0; i < graph.outputs().size(); ++i) CHECK(nmse(mock.output(i), cpu.output(i)) < limit);
}

Graph finish(GraphBuilder &b) {
    auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    return *graph;
}

Data base_data() {
    return {{"x", random_floats(3 * 4 * 8, 1)},
            {"y", random_floats(3 * 4 * 8, 2)},
            {"w", random_floats(8, 3)},
            {"b", random_floats(8, 4)},
            {"pos", to_bytes<int32_t>({5, 0, 1000})},
            {"factors", to_bytes<float>({1, 2, 4})}};
}

}  // namespace

TEST_CASE("composites: norms and gates agree with their formulas") {
    GraphBuilder b;
    b.set_precision(Precision::exact);
    const ValueId x = b.input("x", DType::f32, {3, 4, 8}), y = b.input("y", DType::f32, {3, 4, 8});
    const ValueId w = b.weight("w", DType::f32, {8}), bias = b.weight("b", DType::f32, {8});
    tn_params_norm norm{};
    norm.struct_size = TN_SIZE_PARAMS_NORM, norm.eps = 1e-5f;
    b.output(b.rms_norm(x, w, 1e-5f));
    b.output(b.rms_norm(x, k_no_value, 1e-2f));
    b.output(b.node(TN_OP_LAYER_NORM, {x, w, bias}, ParamBlob::of(norm)));
    b.output(b.swiglu(x, y));
    b.output(b.node(TN_OP_GEGLU, {x, y}));
    b.output(b.node(TN_OP_REGLU, {x, y}));
    compare(finish(b), base_data(), "norms and gates");
}

TEST_CASE("composites: rope agrees with its formula in both pairings, with factors, scaling and YaRN") {
    for (uint32_t variant = 0; variant < 16; ++variant) {
        GraphBuilder b;
        b.set_precision(Precision::exact);
        const ValueId x = b.input("x", DType::f32, {3, 4, 8}), pos = b.input("pos", DType::i32, {3});
        tn_params_rope rope{};
        rope.dims = variant & 1 ? 6 : 8;
        rope.pairing = variant & 2 ? TN_ROPE_HALVES : TN_ROPE_ADJACENT;
        rope.base = 10000, rope.scale = variant & 4 ? 0.25f : 1, rope.attn_factor = 1;
        rope.ext_factor = variant & 8 ? 1 : 0, rope.beta_fast = 32, rope.beta_slow = 1, rope.original_context = 256;
        const bool factors = variant & 1;
        b.output(b.rope(x, pos, factors ? b.weight("factors", DType::f32, {3}) : k_no_value, rope));
        compare(finish(b), base_data(), fmt::format("rope variant {}", variant), 1e-8);
    }
}

TEST_CASE("composites: attention over a paged cache agrees with its formula") {
    for (uint32_t variant = 0; variant < 16; ++variant) {
        GraphBuilder b;
        b.set_precision(Precision::exact);
        // Two sequences in a cache of 6 blocks of 4 rows; one token is padding.
        const DType type = variant & 1 ? DType::f16 : DType::f32;
        const ValueId q = b.input("q", DType::f32, {5, 4, 8}), fresh = b.input("new", DType::f32, {5, 2, 8});
        const ValueId k0 = b.state("k", type, {24, 2, 8}), v0 = b.state("v", type, {24, 2, 8});
        const ValueId rows = b.input("rows", DType::i32, {5});
        const GraphBuilder::KvView kv{b.input("q_pos", DType::i32, {5}), b.input("seq", DType::i32, {5}),
                                      b.input("blocks", DType::i32, {2, 3}), b.input("kv_start", DType::i32, {2}),
                                      b.input("kv_len", DType::i32, {2})};
        tn_params_attention params{};
        params.scale = 0.35f, params.block_rows = 4;
        params.window = variant & 2 ? 3 : 0, params.softcap = variant & 4 ? 5.0f : 0;
        const ValueId k = b.kv_append(k0, fresh, rows), v = b.kv_append(v0, fresh, rows);
        const ValueId sinks = variant & 8 ? b.weight("sinks", DType::f32, {4}) : k_no_value;
        b.output(b.attention(q, k, v, kv, sinks, params));
        Data data;
        data["q"] = random_floats(5 * 4 * 8, 10), data["new"] = random_floats(5 * 2 * 8, 11);
        // Sequence 0: positions 0..9 in blocks 4, 1, 0; its tokens are 7, 8, 9. Sequence 1: position 0 in block 2.
        data["rows"] = to_bytes<int32_t>({1 * 4 + 3, 0, 1, 2 * 4, -1});
        data["q_pos"] = to_bytes<int32_t>({7, 8, 9, 0, 0});
        data["seq"] = to_bytes<int32_t>({0, 0, 0, 1, -1});
        data["blocks"] = to_bytes<int32_t>({4, 1, 0, 2, 3, 5});
        data["kv_start"] = to_bytes<int32_t>({0, 0});
        data["kv_len"] = to_bytes<int32_t>({10, 1});
        data["sinks"] = random_floats(4, 12);
        compare(finish(b), data, fmt::format("attention variant {}", variant), 1e-8);
    }
}
