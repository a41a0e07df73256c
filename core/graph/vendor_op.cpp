#include "graph/vendor_op.h"

#include <fmt/format.h>

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
    return Node{call.op.id, Precision::fast, {}, {}, call.params, {}};
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
    std::vector<ValueId> ids;  // of the plugin's numbering
    uint32_t first_output;
    std::vector<ValueId> results;
    Status status;

    tn_status fail(Status failure) {
        if (status.ok()) status = std::move(failure);
        return TN_INVALID_ARGUMENT;
    }
};

tn_status sink_value(void *ctx, const tn_value *, uint32_t *out) {
    auto &sink = *static_cast<Sink *>(ctx);
    // Shapes follow from the nodes; the number is all that the plugin needs.
    sink.ids.push_back(k_no_value);
    *out = uint32_t(sink.ids.size() - 1);
    return TN_OK;
}

tn_status sink_constant(void *ctx, const tn_value *value, const void *data, uint64_t bytes, uint32_t *out) {
    auto &sink = *static_cast<Sink *>(ctx);
    auto shape = read_shape(*value, "decompose");
    if (!shape.ok()) return sink.fail(shape.status());
    const ValueId id =
        sink.builder->constant(DType(value->type), *shape, {static_cast<const std::byte *>(data), bytes});
    if (id == k_no_value) return TN_INVALID_ARGUMENT;
    sink.ids.push_back(id);
    *out = uint32_t(sink.ids.size() - 1);
    return TN_OK;
}

tn_status sink_node(void *ctx, const tn_node *from) {
    auto &sink = *static_cast<Sink *>(ctx);
    std::vector<ValueId> inputs;
    for (uint32_t i = 0; i < from->input_count; ++i) {
        const uint32_t number = from->inputs[i];
        if (number != TN_NONE && number >= sink.ids.size())
            return sink.fail(
                Status::internal(fmt::format("{}: its formula reads value {}", sink.call->op.name, number)));
        inputs.push_back(number == TN_NONE ? k_no_value : sink.ids[number]);
    }
    const OpInfo *op = find_standard_op(from->op);
    if (!op)
        return sink.fail(Status::internal(fmt::format("{}: its formula uses op {}", sink.call->op.name, from->op)));
    const ParamBlob params =
        from->params ? ParamBlob(from->params, *static_cast<const uint64_t *>(from->params)) : ParamBlob();
    std::vector<ValueId> outputs;
    const OpContract *contract = find_contract(op->id);
    if (contract && contract->decompose) {
        // Composites in a vendor's formula are taken apart at once: a decomposition holds primitives only.
        std::vector<Value> copies;
        std::vector<const Value *> operands;
        copies.reserve(inputs.size());
        for (ValueId id : inputs)
            operands.push_back(id == k_no_value ? nullptr : &copies.emplace_back(sink.builder->value(id)));
        outputs = contract->decompose(*sink.builder, OpCall{*op, operands, params, std::nullopt}, inputs);
    } else {
        outputs = sink.builder->nodes(op->id, inputs, params);
    }
    if (sink.builder->failed()) return TN_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < from->output_count && i < outputs.size(); ++i) {
        const uint32_t number = from->outputs[i];
        if (number >= sink.ids.size())
            return sink.fail(
                Status::internal(fmt::format("{}: its formula writes value {}", sink.call->op.name, number)));
        sink.ids[number] = outputs[i];
        if (number >= sink.first_output && number - sink.first_output < sink.results.size())
            sink.results[number - sink.first_output] = outputs[i];
    }
    return TN_OK;
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

std::vector<ValueId> decompose_vendor(GraphBuilder &b, const OpCall &call, std::span<const ValueId> operands) {
    const tn_op_info &info = *call.op.vendor;
    if (!info.decompose) return {};
    OneNode one;
    const Node node = make_node(call);
    describe_call(one, call, node);
    Sink sink{&b, &call, {}, uint32_t(one.graph.value_count() - call.op.outputs), {}, {}};
    size_t next = 0;
    for (const Value *input : call.inputs) {
        if (input) sink.ids.push_back(operands[next]);
        ++next;
    }
    sink.ids.resize(one.graph.value_count(), k_no_value);
    sink.results.assign(call.op.outputs, k_no_value);
    tn_graph_sink table{};
    table.struct_size = TN_SIZE_GRAPH_SINK;
    table.ctx = &sink;
    table.value_add = sink_value;
    table.node_add = sink_node;
    table.constant_add = sink_constant;
    const tn_graph &graph = one.graph.view();
    const Status status = call_plugin(call.op.name, "decompose", info.decompose, info.ctx, &graph, graph.nodes, &table);
    // Half a formula is none: the op then counts as one that can't be taken apart.
    if (!status.ok() || !sink.status.ok() || std::ranges::count(sink.results, k_no_value)) return {};
    return sink.results;
}

}  // namespace tenon
