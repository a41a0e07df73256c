// GraphBuilder: leaves, nodes and freezing. Views are in views.cpp, the ops by name in formulas.cpp.
#include <fmt/format.h>

#include <cstring>
#include <unordered_set>

#include "graph/hash.h"
#include "graph/op_contract.h"
#include "graph/vendor_op.h"
#include "tenon/graph.h"

namespace tenon {

ParamBlob::ParamBlob(const void *params, uint64_t bytes) : words_((bytes + 7) / 8) {
    if (bytes) std::memcpy(words_.data(), params, bytes);
}

GraphBuilder::GraphBuilder(const OpSet *ops, std::shared_ptr<const void> owner) : ops_(ops), owner_(std::move(owner)) {}

ValueId GraphBuilder::fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
    return k_no_value;
}

bool GraphBuilder::known(ValueId id) {
    if (!status_.ok()) return false;
    if (id < values_.size()) return true;
    fail(Status::invalid_argument(fmt::format("value {} isn't one of this graph's {}", id, values_.size())));
    return false;
}

ValueId GraphBuilder::add_value(Value value) {
    values_.push_back(std::move(value));
    return ValueId(values_.size() - 1);
}

ValueId GraphBuilder::add_leaf(std::string name, DType type, const Shape &shape, uint32_t flag) {
    if (!status_.ok()) return k_no_value;
    if (shape.rank() > TN_MAX_RANK || !canonical_bytes(type, shape.sizes()))
        return fail(Status::invalid_argument(
            fmt::format("'{}': {} is no shape for {}", name, to_string(shape), dtype_info(type).name)));
    Value value;
    value.type = type;
    value.shape = shape;
    value.stride_bytes = contiguous_strides(type, shape);
    value.flags = flag;
    value.name = std::move(name);
    return add_value(std::move(value));
}

ValueId GraphBuilder::input(std::string name, DType type, Shape shape) {
    const ValueId id = add_leaf(std::move(name), type, shape, TN_VALUE_INPUT);
    if (id != k_no_value) inputs_.push_back(id);
    return id;
}

ValueId GraphBuilder::weight(std::string name, DType type, Shape shape) {
    return add_leaf(std::move(name), type, shape, TN_VALUE_WEIGHT);
}

ValueId GraphBuilder::state(std::string name, DType type, Shape shape) {
    return add_leaf(std::move(name), type, shape, TN_VALUE_STATE);
}

ValueId GraphBuilder::constant(DType type, Shape shape, std::span<const std::byte> bytes) {
    const ValueId id = add_leaf(fmt::format("{}constant.{}", scope_, values_.size()), type, shape, TN_VALUE_WEIGHT);
    if (id == k_no_value) return id;
    const uint64_t size = uint64_t(*canonical_bytes(type, shape.sizes()));
    if (size != bytes.size())
        return fail(Status::invalid_argument(fmt::format("a constant {} of {} takes {} bytes, not {}", to_string(shape),
                                                         dtype_info(type).name, size, bytes.size())));
    values_[id].constant = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
    return id;
}

std::string GraphBuilder::auto_name(std::string name, std::string_view op) const {
    return name.empty() ? fmt::format("{}{}.{}", scope_, op, nodes_.size()) : scope_ + name;
}

namespace {

/// NumPy's rule: aligned at the last dimension, sizes equal or 1.
std::optional<Shape> common_shape(const Shape &a, const Shape &b) {
    const Shape &longer = a.rank() >= b.rank() ? a : b, &shorter = a.rank() >= b.rank() ? b : a;
    Shape out = longer;
    const uint32_t lead = longer.rank() - shorter.rank();
    for (uint32_t i = 0; i < shorter.rank(); ++i) {
        int64_t &size = out[lead + i];
        if (size == 1) size = shorter[i];
        if (shorter[i] != 1 && shorter[i] != size) return std::nullopt;
    }
    return out;
}

Status check_counts(const OpInfo &op, std::span<const ValueId> inputs, const ParamBlob &params) {
    TENON_REQUIRE(op.kind != OpKind::view, "{} is a view: use the builder's function of that name", op.name);
    TENON_REQUIRE(op.kind != OpKind::reserved, "the op {} has no contract yet", op.name);
    TENON_REQUIRE(inputs.size() >= op.min_inputs && inputs.size() <= op.max_inputs, "{} takes {} to {} inputs, not {}",
                  op.name, op.min_inputs, op.max_inputs, inputs.size());
    for (size_t i = 0; i < op.min_inputs; ++i)
        TENON_REQUIRE(inputs[i] != k_no_value, "{}: input {} is absent", op.name, i);
    if (!op.params_bytes) return {};
    const auto bytes = params.bytes();
    TENON_REQUIRE(bytes.size() >= op.params_bytes && params.as<uint64_t>() >= op.params_bytes,
                  "{} takes {} bytes of params, not {}", op.name, op.params_bytes, bytes.size());
    return {};
}

}  // namespace

Status GraphBuilder::broadcast_inputs(uint32_t op, std::vector<ValueId> &inputs) {
    const OpContract *contract = find_contract(op);
    if (!contract || contract->broadcast == Broadcast::none) return {};
    Shape shape = values_[inputs[0]].shape;
    for (size_t i = 1; i < inputs.size(); ++i) {
        const auto common = common_shape(shape, values_[inputs[i]].shape);
        const bool fits = common && (contract->broadcast == Broadcast::all || *common == shape);
        TENON_REQUIRE(fits, "shapes {} and {} don't broadcast", to_string(shape), to_string(values_[inputs[i]].shape));
        shape = *common;
    }
    for (ValueId &id : inputs)
        if (!(values_[id].shape == shape)) id = broadcast(id, shape);
    return {};
}

std::vector<ValueId> GraphBuilder::add_node(const OpInfo *op, std::vector<ValueId> inputs, ParamBlob params,
                                            std::string name, std::optional<DType> type) {
    if (!status_.ok()) return {};
    name = auto_name(std::move(name), op->name);
    auto refuse = [&](Status status) {
        fail(std::move(status).in(fmt::format("node '{}'", name)));
        return std::vector<ValueId>();
    };
    while (!inputs.empty() && inputs.back() == k_no_value) inputs.pop_back();
    for (ValueId id : inputs)
        if (id != k_no_value && !known(id)) return {};
    if (Status status = check_counts(*op, inputs, params); !status.ok()) return refuse(std::move(status));
    if (Status status = broadcast_inputs(op->id, inputs); !status.ok()) return refuse(std::move(status));

    std::vector<const Value *> operands;
    for (ValueId id : inputs) operands.push_back(id == k_no_value ? nullptr : &values_[id]);
    const OpCall call{*op, operands, params, type, precision_};
    std::vector<OutputSpec> specs(op->outputs);
    Status status = op->kind == OpKind::vendor ? infer_vendor(call, specs) : find_contract(op->id)->infer(call, specs);
    if (!status.ok()) return refuse(std::move(status));

    Node node{op->id, precision_, inputs, {}, std::move(params), name};
    for (size_t i = 0; i < specs.size(); ++i) {
        const OutputSpec &spec = specs[i];
        const ValueId out = add_leaf(i ? fmt::format("{}:{}", name, i) : name, spec.type, spec.shape, 0);
        if (out == k_no_value) return {};
        Value &value = values_[out];
        value.producer = NodeId(nodes_.size());
        if (spec.alias_of >= 0) {
            const ValueId source = inputs[size_t(spec.alias_of)];
            const Value &input = values_[source];
            value.view_of = input.view_of == k_no_value ? source : input.view_of;
            value.offset = input.offset;
            value.stride_bytes = input.stride_bytes;
            if (values_[value.view_of].flags & (TN_VALUE_WEIGHT | TN_VALUE_INPUT))
                return refuse(Status::invalid_argument(
                    fmt::format("'{}' can't be changed in place: it is no state", values_[value.view_of].name)));
        }
        node.outputs.push_back(out);
    }
    nodes_.push_back(std::move(node));
    return nodes_.back().outputs;
}

std::vector<ValueId> GraphBuilder::nodes(uint32_t op, std::vector<ValueId> inputs, ParamBlob params, std::string name) {
    const OpInfo *info = find_op(ops_, op);
    if (!info) return fail(Status::invalid_argument(fmt::format("op {} isn't known", op))), std::vector<ValueId>();
    return add_node(info, std::move(inputs), std::move(params), std::move(name));
}

ValueId GraphBuilder::node(uint32_t op, std::vector<ValueId> inputs, ParamBlob params, std::string name) {
    const auto outputs = nodes(op, std::move(inputs), std::move(params), std::move(name));
    return outputs.empty() ? k_no_value : outputs[0];
}

ValueId GraphBuilder::node(std::string_view op, std::vector<ValueId> inputs, ParamBlob params, std::string name) {
    const OpInfo *info = find_op(ops_, op);
    if (!info) return fail(Status::invalid_argument(fmt::format("there is no op '{}'", op)));
    const auto outputs = add_node(info, std::move(inputs), std::move(params), std::move(name));
    return outputs.empty() ? k_no_value : outputs[0];
}

void GraphBuilder::output(ValueId x) {
    if (!known(x)) return;
    values_[x].flags |= TN_VALUE_OBSERVED;
    outputs_.push_back(x);
}

Result<Graph> GraphBuilder::finish() && {
    if (!status_.ok()) return status_;
    std::unordered_set<std::string_view> names;
    for (const Value &value : values_)
        if (value.view_of == k_no_value && value.producer == k_no_value && !names.insert(value.name).second)
            return Status::invalid_argument(fmt::format("two leaves of the graph are named '{}'", value.name));
    auto body = std::make_shared<Graph::Body>();
    body->hash = hash_structure(values_, nodes_, outputs_, ops_);
    body->names = hash_names(values_, nodes_);
    body->values = std::move(values_);
    body->nodes = std::move(nodes_);
    body->inputs = std::move(inputs_);
    body->outputs = std::move(outputs_);
    body->ops = ops_;
    body->ops_owner = std::move(owner_);
    Graph graph;
    graph.body_ = std::move(body);
    return graph;
}

}  // namespace tenon
