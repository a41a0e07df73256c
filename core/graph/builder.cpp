// GraphBuilder: leaves, nodes and freezing. Views are in views.cpp, the ops by name in formulas.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <charconv>
#include <cstring>

#include "graph/guarded.h"
#include "graph/hash.h"
#include "graph/name_index.h"
#include "graph/op_contract.h"
#include "graph/vendor_op.h"
#include "tenon/graph.h"

namespace tenon {

ParamBlob::ParamBlob(const void *params, uint64_t bytes) : count_((bytes + 7) / 8) {
    if (count_ > near_.size()) far_.resize(count_);
    if (bytes) std::memcpy(count_ > near_.size() ? far_.data() : near_.data(), params, bytes);
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

ValueId GraphBuilder::add_value(const Value &value) {
    if (values_.size() >= k_no_value) return fail(Status::invalid_argument("a graph has at most 2^32 - 1 values"));
    const ValueId id = ValueId(values_.size());
    bases_.push_back(value.view_of == k_no_value ? id : value.view_of);
    if (value.view_of == k_no_value && value.producer == k_no_value) leaves_.push_back(id);
    values_.push_back(value);
    return id;
}

/// A contiguous value that stands for itself; nothing where the shape is none.
std::optional<Value> GraphBuilder::make_value(Name name, DType type, const Shape &shape) {
    if (shape.rank() > TN_MAX_RANK || !canonical_bytes(type, shape.sizes())) {
        fail(Status::invalid_argument(
            fmt::format("'{}': {} is no shape for {}", name, to_string(shape), dtype_info(type).name)));
        return std::nullopt;
    }
    Value value;
    value.type = type;
    value.shape = shape;
    value.stride_bytes = contiguous_strides(type, shape);
    value.name = name;
    return value;
}

ValueId GraphBuilder::add_leaf(std::string_view name, DType type, const Shape &shape, uint32_t flag) noexcept {
    return guarded(k_no_value, [&] {
        if (!status_.ok()) return k_no_value;
        std::optional<Value> value = make_value(memory_.join({name}), type, shape);
        if (!value) return k_no_value;
        value->flags = flag;
        return add_value(*value);
    });
}

ValueId GraphBuilder::input(std::string name, DType type, Shape shape) {
    return guarded(k_no_value, [&] {
        const ValueId id = add_leaf(name, type, shape, TN_VALUE_INPUT);
        if (id != k_no_value) inputs_.push_back(id);
        return id;
    });
}

ValueId GraphBuilder::weight(std::string name, DType type, Shape shape) {
    return add_leaf(name, type, shape, TN_VALUE_WEIGHT);
}

ValueId GraphBuilder::state(std::string name, DType type, Shape shape) {
    return add_leaf(name, type, shape, TN_VALUE_STATE);
}

ValueId GraphBuilder::constant(DType type, Shape shape, std::span<const std::byte> bytes) {
    return guarded(k_no_value, [&] {
        const ValueId id = add_leaf(fmt::format("{}constant.{}", scope_, values_.size()), type, shape, TN_VALUE_WEIGHT);
        if (id == k_no_value) return id;
        const uint64_t size = uint64_t(*canonical_bytes(type, shape.sizes()));
        if (size != bytes.size())
            return fail(
                Status::invalid_argument(fmt::format("a constant {} of {} takes {} bytes, not {}", to_string(shape),
                                                     dtype_info(type).name, size, bytes.size())));
        void *place = memory_.take(bytes.size(), alignof(std::max_align_t));
        if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
        using Bytes = std::span<const std::byte>;
        values_[id].constant = new (memory_.take(sizeof(Bytes), alignof(Bytes)))
            Bytes(static_cast<const std::byte *>(place), bytes.size());
        return id;
    });
}

/// Of a node and its first output.
Name GraphBuilder::node_name(std::string_view name, std::string_view op) {
    if (!name.empty()) return memory_.join({scope_, name});
    char number[20];
    const auto end = std::to_chars(std::begin(number), std::end(number), nodes_.size()).ptr;
    return memory_.join({scope_, op, ".", std::string_view(number, size_t(end - number))});
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

Status check_counts(const OpInfo &op, std::span<const ValueId> inputs, ParamView params) {
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

Status infer(const OpCall &call, std::span<OutputSpec> out) {
    return call.op.kind == OpKind::vendor ? infer_vendor(call, out) : find_contract(call.op.id)->infer(call, out);
}

}  // namespace

Status GraphBuilder::broadcast_inputs(uint32_t op, std::span<ValueId> inputs) {
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
    return status_;
}

/// Empty on failure. Throws std::bad_alloc.
std::span<const ValueId> GraphBuilder::add_node(const OpInfo *op, std::span<const ValueId> inputs, ParamView params,
                                                std::string_view name, std::optional<DType> type) {
    if (!status_.ok()) return {};
    while (!inputs.empty() && inputs.back() == k_no_value) inputs = inputs.first(inputs.size() - 1);
    for (ValueId id : inputs)
        if (id != k_no_value && !known(id)) return {};
    const std::span<ValueId> own_inputs = memory_.copy(inputs);
    Node node{op->id, precision_, own_inputs, {}, {}, node_name(name, op->name)};
    auto refuse = [&](Status status) {
        fail(std::move(status).in(fmt::format("node '{}'", node.name)));
        return std::span<const ValueId>();
    };
    if (Status status = check_counts(*op, inputs, params); !status.ok()) return refuse(std::move(status));
    if (Status status = broadcast_inputs(op->id, own_inputs); !status.ok()) return refuse(std::move(status));

    if (const auto bytes = params.bytes(); !bytes.empty()) {
        // Whole words, as contracts and plugins read structs with padding at their end.
        const auto words = memory_.take_array<uint64_t>((bytes.size() + 7) / 8);
        words.back() = 0;
        std::memcpy(words.data(), bytes.data(), bytes.size());
        node.params = ParamView(words.data(), words.size_bytes());
    }
    boost::container::small_vector<const Value *, 8> operands;
    for (ValueId id : own_inputs) operands.push_back(id == k_no_value ? nullptr : &values_[id]);
    boost::container::small_vector<OutputSpec, 2> specs(op->outputs);
    const OpCall call{*op, {operands.data(), operands.size()}, node.params, type, precision_};
    if (Status status = infer(call, {specs.data(), specs.size()}); !status.ok()) return refuse(std::move(status));
    if (Status status = add_outputs(node, {specs.data(), specs.size()}); !status.ok()) return refuse(std::move(status));
    if (!status_.ok()) return {};
    return nodes_.push_back(node).outputs;
}

/// The node's outputs, as inference gave them.
Status GraphBuilder::add_outputs(Node &node, std::span<const OutputSpec> specs) {
    const std::span<ValueId> outputs = memory_.take_array<ValueId>(specs.size());
    for (size_t i = 0; i < specs.size(); ++i) {
        const OutputSpec &spec = specs[i];
        const Name name = i ? memory_.join({fmt::format("{}:{}", node.name, i)}) : node.name;
        std::optional<Value> value = make_value(name, spec.type, spec.shape);
        if (!value) return {};
        value->producer = NodeId(nodes_.size());
        if (spec.alias_of >= 0) {
            const ValueId source = node.inputs[size_t(spec.alias_of)];
            value->view_of = bases_[source];
            value->offset = values_[source].offset;
            value->stride_bytes = values_[source].stride_bytes;
            const Value &base = values_[value->view_of];
            TENON_REQUIRE(!(base.flags & (TN_VALUE_WEIGHT | TN_VALUE_INPUT)),
                          "'{}' can't be changed in place: it is no state", base.name);
        }
        outputs[i] = add_value(*value);
    }
    node.outputs = outputs;
    return {};
}

ValueId GraphBuilder::add_one(const OpInfo *op, std::span<const ValueId> inputs, ParamView params,
                              std::string_view name, std::optional<DType> type) noexcept {
    return guarded(k_no_value, [&] {
        const auto outputs = add_node(op, inputs, params, name, type);
        return outputs.empty() ? k_no_value : outputs[0];
    });
}

ValueId GraphBuilder::add_one(uint32_t op, std::span<const ValueId> inputs, ParamView params,
                              std::string_view name) noexcept {
    return guarded(k_no_value, [&] {
        const OpInfo *info = find_op(ops_, op);
        if (!info) return fail(Status::invalid_argument(fmt::format("op {} isn't known", op)));
        const auto outputs = add_node(info, inputs, params, name);
        return outputs.empty() ? k_no_value : outputs[0];
    });
}

std::vector<ValueId> GraphBuilder::nodes(uint32_t op, std::vector<ValueId> inputs, ParamBlob params, std::string name) {
    return guarded(std::vector<ValueId>(), [&] {
        const OpInfo *info = find_op(ops_, op);
        if (!info) return fail(Status::invalid_argument(fmt::format("op {} isn't known", op))), std::vector<ValueId>();
        const auto outputs = add_node(info, inputs, params, name);
        return std::vector<ValueId>(outputs.begin(), outputs.end());
    });
}

ValueId GraphBuilder::node(uint32_t op, std::vector<ValueId> inputs, ParamBlob params, std::string name) {
    return add_one(op, inputs, params, name);
}

ValueId GraphBuilder::node(uint32_t op, std::initializer_list<ValueId> inputs, ParamBlob params, std::string name) {
    return add_one(op, inputs, params, name);
}

ValueId GraphBuilder::node(std::string_view op, std::vector<ValueId> inputs, ParamBlob params, std::string name) {
    return guarded(k_no_value, [&] {
        const OpInfo *info = find_op(ops_, op);
        if (!info) return fail(Status::invalid_argument(fmt::format("there is no op '{}'", op)));
        return add_one(info, inputs, params, name);
    });
}

void GraphBuilder::output(ValueId x) {
    guarded(k_no_value, [&] {
        if (!known(x)) return k_no_value;
        values_[x].flags |= TN_VALUE_OBSERVED;
        return outputs_.push_back(x);
    });
}

/// Whoever gives tensors finds leaves by name, so these are told apart.
Status GraphBuilder::check_leaves() const {
    NameIndex names(values_, leaves_.size());
    for (ValueId id : leaves_)
        if (names.insert(id) != k_no_value)
            return Status::invalid_argument(fmt::format("two leaves of the graph are named '{}'", values_[id].name));
    return {};
}

Result<Graph> GraphBuilder::finish() && {
    if (!status_.ok()) return std::move(status_);
    return no_throw([&]() -> Result<Graph> {
        TENON_TRY(check_leaves());
        auto body = std::make_shared<Graph::Body>();
        body->hash = hash_structure(values_, nodes_, outputs_, ops_);
        body->names = hash_names(values_, leaves_, nodes_);
        body->flags.reserve(values_.size());
        for (const Value &value : values_) body->flags.push_back(value.flags);
        for (const Node &node : nodes_)
            for (ValueId output : node.outputs) body->changes_in_place |= bases_[output] != output;
        body->memory = std::move(memory_);
        body->values = std::move(values_);
        body->nodes = std::move(nodes_);
        body->bases = std::move(bases_);
        body->leaves = std::move(leaves_);
        body->inputs = std::move(inputs_);
        body->outputs = std::move(outputs_);
        body->values.trim();
        body->nodes.trim();
        body->bases.trim();
        body->leaves.trim();
        body->ops = ops_;
        body->ops_owner = std::move(owner_);
        Graph graph;
        graph.body_ = std::move(body);
        return graph;
    });
}

}  // namespace tenon
