#include "tenon/graph.h"

#include <doctest/doctest.h>

#include "graph/decompose.h"
#include "graph/op_contract.h"

using namespace tenon;

namespace {

/// x [2, 8] -> rms_norm -> linear [4] with a residual, as models have it.
Graph small_graph(const std::string &prefix, float eps = 1e-5f, DType weight_type = DType::f32) {
    GraphBuilder b;
    const ValueId x = b.input(prefix + "x", DType::f32, {2, 32});
    const ValueId norm = b.rms_norm(x, b.weight(prefix + "norm", DType::f32, {32}), eps);
    const ValueId y = b.linear(norm, b.weight(prefix + "w", weight_type, {32, 32}), k_no_value, "y");
    b.output(b.add(y, x, "sum"));
    auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    return *graph;
}

Status failure(void (*build)(GraphBuilder &b)) {
    GraphBuilder b;
    build(b);
    auto graph = std::move(b).finish();
    REQUIRE(!graph.ok());
    return graph.status();
}

}  // namespace

TEST_CASE("graph: the hash is of structure, not of names") {
    CHECK(small_graph("a.").hash() == small_graph("b.").hash());
    CHECK(small_graph("a.").hash() != small_graph("a.", 1e-6f).hash());
    CHECK(small_graph("a.").hash() != small_graph("a.", 1e-5f, DType::q4_1).hash());
}

TEST_CASE("graph: the hash sees precision, observed values and views") {
    auto make = [](Precision precision, bool observe, int64_t start) {
        GraphBuilder b;
        b.set_precision(precision);
        const ValueId x = b.input("x", DType::f32, {4, 4});
        const ValueId y = b.node(TN_OP_NEG, {b.slice(x, 0, start, 2)});
        const ValueId z = b.node(TN_OP_ABS, {y});
        b.output(z);
        if (observe) b.output(y);
        return std::move(b).finish()->hash();
    };
    const GraphHash hash = make(Precision::fast, false, 0);
    CHECK(hash == make(Precision::fast, false, 0));
    CHECK(hash != make(Precision::exact, false, 0));
    CHECK(hash != make(Precision::fast, true, 0));
    CHECK(hash != make(Precision::fast, false, 1));
}

TEST_CASE("graph: views are composed down to the base") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {4, 6});
    const ValueId rows = b.slice(x, 0, 1, 2);           // rows 1 and 2
    const ValueId columns = b.slice(rows, 1, 1, 2, 3);  // columns 1 and 4
    const ValueId turned = b.permute(columns, std::array<uint32_t, 2>{1, 0});
    const Value &view = b.value(turned);
    CHECK(view.view_of == x);
    CHECK(view.offset == 4u * (6 + 1));
    CHECK(view.shape == Shape{2, 2});
    CHECK(view.stride_bytes[0] == 12);
    CHECK(view.stride_bytes[1] == 24);
    CHECK(!is_contiguous(view));
    CHECK(is_contiguous(b.value(rows)));
    CHECK(b.value(b.broadcast(b.slice(x, 1, 0, 1), {3, 4, 6})).stride_bytes[2] == 0);
    CHECK(std::move(b).finish().ok());
}

TEST_CASE("graph: block types are cut and turned only between blocks") {
    CHECK(failure([](GraphBuilder &b) {
              b.slice(b.weight("w", DType::q4_1, {4, 64}), 1, 16, 32);
          })
              .message()
              .find("between blocks") != std::string::npos);
    CHECK(failure([](GraphBuilder &b) {
              b.permute(b.weight("w", DType::q4_1, {64, 64}), std::array<uint32_t, 2>{1, 0});
          })
              .message()
              .find("last dimension") != std::string::npos);
    GraphBuilder b;
    const ValueId half = b.slice(b.weight("w", DType::q4_1, {4, 64}), 1, 32, 32);
    CHECK(b.value(half).offset == 20);
    CHECK(b.value(half).stride_bytes[0] == 40);
}

TEST_CASE("graph: the first failure is kept and names the node and what doesn't fit") {
    const Status status = failure([](GraphBuilder &b) {
        b.set_scope("blk.7.");
        const ValueId x = b.input("x", DType::f32, {2, 32});
        b.linear(x, b.weight("w", DType::q8_0, {8, 64}), k_no_value, "attn_q");
        b.node(uint32_t(9999), {x});
    });
    CHECK(status.code() == Code::invalid_argument);
    CHECK(status.message().find("blk.7.attn_q") != std::string::npos);
    CHECK(status.message().find("[8, 64]") != std::string::npos);
}

TEST_CASE("graph: wrong uses are answers") {
    CHECK(!failure([](GraphBuilder &b) { b.input("x", DType::q4_0, {33}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.input("x", DType::f32, {-1}); }).ok());
    CHECK(failure([](GraphBuilder &b) { b.input("x", DType(200), {1}); }).message().find("unknown") !=
          std::string::npos);
    CHECK(!failure([](GraphBuilder &b) { b.input("x", DType::f32, {1, 1, 1, 1, 1, 1, 1, 1, 1}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.input("x", DType::f32, {int64_t(1) << 62, 8}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.input("x", DType::f32, {1}), b.weight("x", DType::f32, {1}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.node(TN_OP_NEG, {17}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.node(TN_OP_NEG, {}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.node(TN_OP_CUMSUM, {b.input("x", DType::f32, {1})}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.node(TN_OP_RESHAPE, {b.input("x", DType::f32, {1})}); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.node(TN_OP_SOFTMAX, {b.input("x", DType::f32, {1})}); }).ok());  // no params
    CHECK(!failure([](GraphBuilder &b) { b.node("acme.conv", {b.input("x", DType::f32, {1})}); }).ok());
    CHECK(!failure([](GraphBuilder &b) {
               b.add(b.input("a", DType::f32, {2, 3}), b.input("b", DType::f32, {2}));
           }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.slice(b.input("x", DType::f32, {4}), 0, 2, 3); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.slice(b.input("x", DType::f32, {4}), 1, 0, 1); }).ok());
    CHECK(!failure([](GraphBuilder &b) { b.reshape(b.input("x", DType::f32, {4}), {5}); }).ok());
}

TEST_CASE("graph: only states and values made by nodes are changed in place") {
    auto append = [](GraphBuilder &b, ValueId cache) {
        return b.kv_append(cache, b.input("new", DType::f32, {1, 2, 4}), b.input("row", DType::i32, {1}));
    };
    GraphBuilder good;
    const ValueId cache = good.state("cache", DType::f16, {8, 2, 4});
    const ValueId after = append(good, cache);
    CHECK(good.value(after).view_of == cache);
    CHECK(std::move(good).finish().ok());
    GraphBuilder bad;
    append(bad, bad.weight("cache", DType::f16, {8, 2, 4}));
    CHECK(!std::move(bad).finish().ok());
}

TEST_CASE("graph: every composite has a formula in primitives of the same shape and type") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {3, 4, 8}), flat = b.input("flat", DType::f32, {3, 8});
    const ValueId pos = b.input("pos", DType::i32, {3}), seq = b.input("seq", DType::i32, {3});
    const ValueId one = b.input("one", DType::i32, {1});
    const ValueId k = b.state("k", DType::f16, {16, 2, 8}), v = b.state("v", DType::f16, {16, 2, 8});
    const ValueId vector = b.weight("vector", DType::f32, {8}), heads = b.weight("heads", DType::f32, {4});
    tn_params_rope rope{};
    rope.dims = 6, rope.base = 10000, rope.scale = 0.25f, rope.ext_factor = 1, rope.attn_factor = 1;
    rope.beta_fast = 32, rope.beta_slow = 1, rope.original_context = 128;
    tn_params_attention attention{};
    attention.scale = 0.3f, attention.block_rows = 4, attention.softcap = 20;
    tn_params_norm norm{};
    norm.struct_size = TN_SIZE_PARAMS_NORM, norm.eps = 1e-5f;
    tn_params_route route{};
    route.struct_size = TN_SIZE_PARAMS_ROUTE, route.k = 2, route.scoring = TN_ROUTE_SIGMOID, route.normalise = 1;
    const GraphBuilder::KvView kv{pos, seq, b.input("blocks", DType::i32, {1, 4}), one, one};
    b.rms_norm(x, vector, 1e-5f);
    b.node(TN_OP_LAYER_NORM, {x, vector, vector}, ParamBlob::of(norm));
    b.linear(flat, b.weight("w", DType::f32, {5, 8}), b.weight("bias", DType::f32, {5}));
    b.rope(x, pos, k_no_value, rope);
    rope.pairing = TN_ROPE_HALVES;
    b.rope(x, pos, b.weight("factors", DType::f32, {3}), rope);
    b.swiglu(x, x);
    b.node(TN_OP_GEGLU, {x, x});
    b.node(TN_OP_REGLU, {x, x});
    const ValueId k2 = b.kv_append(k, b.slice(x, 1, 0, 2), pos);
    b.attention(x, k2, v, kv, k_no_value, attention);
    b.attention(x, k2, v, kv, heads, attention);
    b.node(TN_OP_ROUTE, {flat}, ParamBlob::of(route));
    auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    for (NodeId id = 0; id < graph->nodes().size(); ++id) {
        const Node &node = graph->nodes()[id];
        CAPTURE(node.name);
        if (graph->op(node).kind != OpKind::composite) continue;
        auto formula = decompose(*graph, id);
        REQUIRE_MESSAGE(formula.ok(), formula.status().message());
        REQUIRE(formula->has_value());
        for (const Node &part : (*formula)->nodes) CHECK(find_standard_op(part.op)->kind == OpKind::primitive);
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            if ((*formula)->results[i] == k_no_value) continue;
            const Value &result = (*formula)->values[(*formula)->results[i]],
                        &output = graph->values()[node.outputs[i]];
            CHECK(result.shape == output.shape);
            CHECK(result.type == output.type);
            CHECK(is_contiguous(result));
        }
    }
}
