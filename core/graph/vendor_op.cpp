#include "graph/vendor_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/guarded.h"
#include "base/plugin_call.h"
#include "graph/abi_graph.h"

namespace tenon {
namespace {

/// The one node with its operands as a graph of its own. Operands that are views are shown as bases with their strides.
struct OneNode {
    AbiGraph graph;
    std::vector<uint32_t> inputs, outputs;
};

void describe_call(OneNode &one, const OpCall &call, const Node &node) {
    for (const Value *input : call.inputs)
        one.inputs.push_back(input ? one.graph.add_value(*input, input->flags, TN_NONE) : k_no_value);
    for (uint32_t i = 0; i < call.op.outputs; ++i) one.outputs.push_back(one.graph.add_value(Value{}, 0, TN_NONE));
    one.graph.add_node(node, one.inputs, one.outputs);
}

Node make_node(const OpCall &call) {
    return Node{call.op.id, call.precision, {}, {}, call.params, {}};
}

Result<Shape> read_shape(const tn_value &value, const char *op) {
    if (value.rank > TN_MAX_RANK || !find_dtype(value.type))
        return Status::internal(
            fmt::format("{}: the plugin's answer has rank {} and type {}", op, value.rank, value.type));
    return Shape(std::span<const int64_t>(value.shape, value.rank));
}

/// What the plugin's formula writes into.
struct Sink {
    GraphBuilder *builder;
    const OpCall *call;
    std::vector<ValueId> ids;  // of the plugin's numbering; k_no_value: not yet written
    uint32_t first_output;
    Status status;

    tn_status fail(std::string_view reason) {
        if (status.ok()) status = Status::internal(fmt::format("its formula {}", reason));
        return TN_INVALID_ARGUMENT;
    }
    uint32_t add(ValueId id) {
        ids.push_back(id);
        return uint32_t(ids.size() - 1);
    }
};

/// A function of the sink: after a failure nothing more is taken, whether the plugin heeds the answer or not.
template <class Body>
tn_status in_sink(void *ctx, Body body) noexcept {
    auto &sink = *static_cast<Sink *>(ctx);
    if (!sink.status.ok() || sink.builder->failed()) return TN_INVALID_ARGUMENT;
    const tn_status status = guarded([&] { return body(sink); });
    // The text is short enough to need no memory.
    if (status == TN_OUT_OF_MEMORY && sink.status.ok()) sink.status = Status::out_of_memory("no memory");
    return status;
}

tn_status sink_value(void *ctx, const tn_value *value, uint32_t *out) {
    return in_sink(ctx, [&](Sink &sink) -> tn_status {
        if (!value || !out || value->struct_size < TN_V1_VALUE)
            return sink.fail("adds a value that is null or too short");
        // Shapes follow from the nodes; the number is all that the plugin needs.
        *out = sink.add(k_no_value);
        return TN_OK;
    });
}

tn_status sink_constant(void *ctx, const tn_value *value, const void *data, uint64_t bytes, uint32_t *out) {
    return in_sink(ctx, [&](Sink &sink) -> tn_status {
        if (!value || !out || (!data && bytes) || value->struct_size < TN_V1_VALUE)
            return sink.fail("adds a constant that is null or too short");
        tn_value own;
        tn_read(&own, TN_SIZE_VALUE, value);
        const auto shape = read_shape(own, "decompose");
        if (!shape.ok()) return sink.fail(fmt::format("adds a constant: {}", shape.status().message()));
        const ValueId id =
            sink.builder->constant(DType(own.type), *shape, {static_cast<const std::byte *>(data), bytes});
        if (id == k_no_value) return TN_INVALID_ARGUMENT;
        *out = sink.add(id);
        return TN_OK;
    });
}

/// The op's params as far as this host knows them: how long the plugin says its struct is never counts alone.
Result<ParamBlob> read_params(const OpInfo &op, const void *params) {
    if (!op.params_bytes) return ParamBlob();
    if (!params || *static_cast<const uint64_t *>(params) < op.params_bytes)
        return Status::invalid_argument(fmt::format("gives {} no or too short params", op.name));
    std::vector<uint64_t> own((op.params_bytes + 7) / 8);
    tn_read(own.data(), op.params_bytes, params);
    own[offsetof(tn_node, next) / sizeof(uint64_t)] = 0;  // the head is every struct's; what follows isn't copied
    return ParamBlob(own.data(), op.params_bytes);
}

/// A composite is taken apart at once, since a decomposition holds primitives only. Its operands are checked as in a
/// graph: formulas rely on that.
Result<std::vector<ValueId>> add_composite(Sink &sink, const OpInfo &op, const OpContract &contract,
                                           std::span<const ValueId> inputs, ParamView params, Precision precision) {
    std::vector<Value> copies;
    std::vector<const Value *> operands;
    copies.reserve(inputs.size());
    for (ValueId id : inputs)
        operands.push_back(id == k_no_value ? nullptr : &copies.emplace_back(sink.builder->value(id)));
    const OpCall call{op, operands, params, std::nullopt, precision};
    std::vector<OutputSpec> specs(op.outputs);
    TENON_TRY(contract.infer(call, specs));
    return contract.decompose(*sink.builder, call, inputs);
}

/// The values that the node reads, in the builder.
Result<std::vector<ValueId>> read_inputs(const Sink &sink, const OpInfo &op, const tn_node &node) {
    TENON_REQUIRE(node.input_count >= op.min_inputs && node.input_count <= op.max_inputs,
                  "gives {} {} inputs, which takes {} to {}", op.name, node.input_count, op.min_inputs, op.max_inputs);
    TENON_REQUIRE(node.inputs || !node.input_count, "gives {} null inputs", op.name);
    std::vector<ValueId> inputs;
    for (uint32_t i = 0; i < node.input_count; ++i) {
        const uint32_t number = node.inputs[i];
        TENON_REQUIRE(number != TN_NONE || i >= op.min_inputs, "leaves input {} of {} out", i, op.name);
        TENON_REQUIRE(number == TN_NONE || (number < sink.ids.size() && sink.ids[number] != k_no_value),
                      "reads value {}, which isn't there yet", number);
        inputs.push_back(number == TN_NONE ? k_no_value : sink.ids[number]);
    }
    return inputs;
}

Status add_node(Sink &sink, const tn_node &node) {
    const OpInfo *op = find_standard_op(node.op);
    TENON_REQUIRE(op, "uses op {}, which isn't a standard one", node.op);
    TENON_REQUIRE(node.outputs && node.output_count == op->outputs, "takes {} outputs of {}, which has {}",
                  node.outputs ? node.output_count : 0, op->name, op->outputs);
    TENON_ASSIGN(const auto inputs, read_inputs(sink, *op, node));
    TENON_ASSIGN(ParamBlob params, read_params(*op, node.params));
    // An inner node may be more exact than the whole, never less.
    const bool exact = sink.call->precision == Precision::exact || node.precision == TN_PRECISION_EXACT;
    const Precision precision = exact ? Precision::exact : Precision::fast;
    sink.builder->set_precision(precision);
    std::vector<ValueId> outputs;
    const OpContract *contract = find_contract(op->id);
    if (contract && contract->decompose) {
        TENON_ASSIGN(outputs, add_composite(sink, *op, *contract, inputs, params, precision));
    } else {
        outputs = sink.builder->nodes(op->id, inputs, std::move(params));
    }
    sink.builder->set_precision(sink.call->precision);
    TENON_REQUIRE(!sink.builder->failed() && outputs.size() == op->outputs, "uses {} wrongly", op->name);
    for (uint32_t i = 0; i < node.output_count; ++i) {
        const uint32_t number = node.outputs[i];
        TENON_REQUIRE(number < sink.ids.size() && sink.ids[number] == k_no_value,
                      "writes value {}, which isn't there or was written before", number);
        sink.ids[number] = outputs[i];
    }
    return {};
}

tn_status sink_node(void *ctx, const tn_node *node) {
    return in_sink(ctx, [&](Sink &sink) -> tn_status {
        if (!node || node->struct_size < TN_V1_NODE) return sink.fail("adds a node that is null or too short");
        tn_node own;
        tn_read(&own, TN_SIZE_NODE, node);
        const Status status = add_node(sink, own);
        return status.ok() ? tn_status(TN_OK) : sink.fail(status.message());
    });
}

}  // namespace

Status infer_vendor(const OpCall &call, std::span<OutputSpec> out) {
    OneNode one;
    const Node node = make_node(call);
    describe_call(one, call, node);
    std::vector<tn_value> answers(out.size());
    for (tn_value &answer : answers) answer.struct_size = TN_SIZE_VALUE;
    const tn_graph &graph = one.graph.view();
    const tn_op_info &info = *call.op.vendor;
    TENON_TRY(call_plugin(call.op.name, "infer", info.infer, info.ctx, &graph, graph.nodes, sizeof(tn_value),
                          answers.data()));
    for (size_t i = 0; i < out.size(); ++i) {
        TENON_ASSIGN(out[i].shape, read_shape(answers[i], info.name));
        out[i].type = DType(answers[i].type);
    }
    return {};
}

Result<std::vector<ValueId>> decompose_vendor(GraphBuilder &b, const OpCall &call, std::span<const ValueId> operands) {
    const tn_op_info &info = *call.op.vendor;
    if (!info.decompose) return std::vector<ValueId>();
    OneNode one;
    const Node node = make_node(call);
    describe_call(one, call, node);
    Sink sink{&b, &call, {}, uint32_t(one.graph.value_count() - call.op.outputs), {}};
    for (size_t i = 0; i < call.inputs.size(); ++i)
        if (call.inputs[i]) sink.ids.push_back(operands[i]);
    sink.ids.resize(one.graph.value_count(), k_no_value);
    tn_graph_sink table{};
    table.struct_size = TN_SIZE_GRAPH_SINK;
    table.ctx = &sink;
    table.value_add = sink_value;
    table.node_add = sink_node;
    table.constant_add = sink_constant;
    const tn_graph &graph = one.graph.view();
    const Status answer = call_plugin(call.op.name, "decompose", info.decompose, info.ctx, &graph, graph.nodes, &table);
    TENON_TRY(sink.status);  // first: the plugin may but pass on what the sink refused
    TENON_TRY(answer);
    std::vector<ValueId> results(sink.ids.begin() + sink.first_output,
                                 sink.ids.begin() + sink.first_output + call.op.outputs);
    if (std::ranges::count(results, k_no_value)) return Status::internal("its formula leaves an output unwritten");
    return results;
}

}  // namespace tenon
