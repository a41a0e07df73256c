#include <doctest/doctest.h>

#include "graph/decompose.h"
#include "tenon/op_set.h"
#include "tenon/ops.h"

using namespace tenon;

namespace {

using Formula = tn_status (*)(const tn_node &node, const tn_graph_sink &sink);

tn_status infer_same(void *, const tn_graph *graph, const tn_node *node, uint64_t, tn_value *out) {
    const tn_value &x = graph->values[node->inputs[0]];
    out->type = x.type;
    out->rank = x.rank;
    std::copy_n(x.shape, x.rank, out->shape);
    return TN_OK;
}

tn_node node_of(uint32_t op, const uint32_t *inputs, uint32_t count, const uint32_t *output) {
    tn_node node{};
    node.struct_size = TN_SIZE_NODE;
    node.op = op;
    node.inputs = inputs;
    node.outputs = output;
    node.input_count = count;
    node.output_count = 1;
    return node;
}

struct Outcome {
    bool whole = false;
    std::string why;
    std::optional<Decomposition> made;
    const FlatArray<Node> &nodes() const { return made->nodes; }
};

/// The formula of an op on x [2, 3], seen through `decompose`.
Outcome outcome_of(Formula formula, Precision precision = Precision::fast) {
    OpSet ops;
    tn_op_info info{};
    info.struct_size = TN_SIZE_OP_INFO;
    info.name = "acme.op";
    info.min_inputs = info.max_inputs = info.output_count = 1;
    info.ctx = &formula;
    info.infer = infer_same;
    info.decompose = [](void *ctx, const tn_graph *, const tn_node *node, const tn_graph_sink *sink) {
        return (*static_cast<Formula *>(ctx))(*node, *sink);
    };
    REQUIRE(ops.add_vendor(info).ok());
    GraphBuilder b(&ops);
    b.set_precision(precision);
    b.output(b.node("acme.op", {b.input("x", DType::f32, {2, 3})}, {}, "node"));
    const auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    Outcome out;
    auto made = decompose(*graph, 0, &out.why);
    REQUIRE_MESSAGE(made.ok(), made.status().message());  // a plugin's mistake never costs the graph
    out.whole = made->has_value();
    out.made = *std::move(made);
    return out;
}

void check_none(Formula formula, const char *reason) {
    const Outcome out = outcome_of(formula);
    CHECK(!out.whole);
    CHECK_MESSAGE(out.why.find(reason) != std::string::npos, out.why);
    CHECK(out.why.find("'node' (acme.op)") != std::string::npos);
}

}  // namespace

TEST_CASE("vendor formula: the node's precision reaches the plugin and holds for the formula") {
    const Formula negate = [](const tn_node &node, const tn_graph_sink &sink) {
        CHECK(node.precision == TN_PRECISION_EXACT);
        const tn_node neg = node_of(TN_OP_NEG, node.inputs, 1, node.outputs);
        return sink.node_add(sink.ctx, &neg);
    };
    const Outcome out = outcome_of(negate, Precision::exact);
    REQUIRE_MESSAGE(out.whole, out.why);
    REQUIRE(out.nodes().size() == 1);
    CHECK(out.nodes()[0].precision == Precision::exact);
}

TEST_CASE("vendor formula: one that fails, is half or wrong is none, with the reason") {
    check_none([](const tn_node &, const tn_graph_sink &) { return tn_status(TN_UNSUPPORTED); }, "decompose");
    check_none([](const tn_node &, const tn_graph_sink &) { return tn_status(TN_OK); }, "leaves an output unwritten");
    check_none(
        [](const tn_node &node, const tn_graph_sink &sink) {
            const tn_node norm = node_of(TN_OP_NEG, node.inputs, 2, node.outputs);
            return sink.node_add(sink.ctx, &norm);
        },
        "gives neg 2 inputs");
    check_none(
        [](const tn_node &node, const tn_graph_sink &sink) {
            const uint32_t far = 77;
            const tn_node neg = node_of(TN_OP_NEG, &far, 1, node.outputs);
            (void)sink.node_add(sink.ctx, &neg);  // a plugin that doesn't look at the answer
            return tn_status(TN_OK);
        },
        "reads value 77");
    // Here the builder itself refuses: shapes that don't broadcast.
    check_none(
        [](const tn_node &node, const tn_graph_sink &sink) {
            const float data[5] = {};
            tn_value value{};
            value.struct_size = TN_SIZE_VALUE;
            value.type = TN_TYPE_ID_F32;
            value.rank = 1;
            value.shape[0] = 5;
            uint32_t pair[2] = {node.inputs[0], 0};
            CHECK(sink.constant_add(sink.ctx, &value, data, sizeof data, &pair[1]) == TN_OK);
            const tn_node add = node_of(TN_OP_ADD, pair, 2, node.outputs);
            return sink.node_add(sink.ctx, &add);
        },
        "don't broadcast");
    check_none(
        [](const tn_node &node, const tn_graph_sink &sink) {
            tn_value value{};
            value.struct_size = TN_SIZE_VALUE;
            value.type = TN_TYPE_ID_F32;
            value.rank = 3;
            value.shape[0] = value.shape[1] = value.shape[2] = 2;
            const float data[8] = {};
            uint32_t constant = 0;
            CHECK(sink.constant_add(sink.ctx, &value, data, sizeof data, &constant) == TN_OK);
            const tn_node neg = node_of(TN_OP_NEG, &constant, 1, node.outputs);
            return sink.node_add(sink.ctx, &neg);
        },
        "its infer function");
}

TEST_CASE("vendor formula: nulls and lengths that the plugin gives are checked") {
    check_none(
        [](const tn_node &, const tn_graph_sink &sink) {
            uint32_t out = 0;
            CHECK(sink.value_add(sink.ctx, nullptr, &out) == TN_INVALID_ARGUMENT);
            return tn_status(TN_OK);
        },
        "null or too short");
    check_none(
        [](const tn_node &, const tn_graph_sink &sink) {
            uint32_t out = 0;
            tn_value value{};
            value.struct_size = TN_V1_VALUE - 1;
            CHECK(sink.constant_add(sink.ctx, &value, nullptr, 0, &out) == TN_INVALID_ARGUMENT);
            return tn_status(TN_OK);
        },
        "null or too short");
    check_none(
        [](const tn_node &node, const tn_graph_sink &sink) {
            const tn_node neg = node_of(TN_OP_NEG, nullptr, 1, node.outputs);
            return sink.node_add(sink.ctx, &neg);
        },
        "null inputs");
    check_none(
        [](const tn_node &node, const tn_graph_sink &sink) {
            tn_params_norm params{};
            params.struct_size = 8;
            tn_node norm = node_of(TN_OP_RMS_NORM, node.inputs, 1, node.outputs);
            norm.params = &params;
            return sink.node_add(sink.ctx, &norm);
        },
        "too short params");
    // A later minor's struct is longer; only what is known of it is copied, however long it says it is.
    const Outcome longer = outcome_of([](const tn_node &node, const tn_graph_sink &sink) {
        tn_params_affine params{};
        params.struct_size = uint64_t(1) << 60;
        params.a = 2;
        tn_node affine = node_of(TN_OP_AFFINE, node.inputs, 1, node.outputs);
        affine.params = &params;
        return sink.node_add(sink.ctx, &affine);
    });
    REQUIRE_MESSAGE(longer.whole, longer.why);
    CHECK(longer.nodes()[0].params.as<uint64_t>() == TN_SIZE_PARAMS_AFFINE);
}
