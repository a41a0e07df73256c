// A vendor's own op: its contract, shape inference, and optionally its decomposition into standard ops.
#ifndef TENON_PLUGIN_VENDOR_OP_HPP
#define TENON_PLUGIN_VENDOR_OP_HPP

#include "tenon/plugin/objects.hpp"

namespace tenon::plugin {

/// Two plugins that register one name get the same id, provided that all of this agrees.
struct OpContract {
    std::string name;  // "acme.conv_winograd"
    uint32_t version = 1;
    uint32_t min_inputs = 1, max_inputs = 1, outputs = 1;
    uint64_t params_bytes = 0;  // of the params struct, head included (TN_END of its last field)
};

/// Type and shape of an output or of a new value; strides are contiguous.
struct TensorShape {
    uint32_t type = TN_TYPE_ID_F32;
    std::vector<int64_t> shape;
};

/// Where a decomposition writes. Valid during decompose only.
class GraphSink {
public:
    explicit GraphSink(const tn_graph_sink &table) : t_(table) {}

    /// A new intermediate value's index.
    uint32_t add_value(const TensorShape &shape) {
        const tn_value value = describe(shape);
        uint32_t index = TN_NONE;
        check(t_.value_add(t_.ctx, &value, &index), "a value");
        return index;
    }
    /// A small contiguous constant; data is copied.
    uint32_t add_constant(const TensorShape &shape, std::span<const std::byte> data) {
        const tn_value value = describe(shape);
        uint32_t index = TN_NONE;
        check(t_.constant_add(t_.ctx, &value, data.data(), data.size(), &index), "a constant");
        return index;
    }
    /// A standard op, in running order. params: the op's struct with its struct_size, or 0.
    void add_node(uint32_t op, uint32_t precision, std::span<const uint32_t> inputs, std::span<const uint32_t> outputs,
                  const void *params = nullptr) {
        auto node = make_struct<tn_node>();
        node.op = op, node.precision = precision, node.params = params;
        node.inputs = inputs.data(), node.input_count = static_cast<uint32_t>(inputs.size());
        node.outputs = outputs.data(), node.output_count = static_cast<uint32_t>(outputs.size());
        check(t_.node_add(t_.ctx, &node), "a node");
    }

    /// As a descriptor, contiguous.
    static tn_value describe(const TensorShape &from) {
        const TypeInfo *type = find_type(from.type);
        if (type == nullptr || from.shape.size() > TN_MAX_RANK) fail(TN_INTERNAL, "no such tensor can be described");
        auto value = make_struct<tn_value>();
        value.type = from.type, value.rank = static_cast<uint32_t>(from.shape.size());
        value.buffer_type = value.view_of = TN_NONE;
        int64_t step = type->block_bytes;
        for (uint32_t i = 0; i < TN_MAX_RANK; ++i) value.shape[i] = 1;
        for (uint32_t i = value.rank; i-- > 0;) {
            value.shape[i] = from.shape[i], value.stride_bytes[i] = step;
            step *= i + 1 == value.rank ? from.shape[i] / type->block_elements : from.shape[i];
        }
        return value;
    }

private:
    static void check(tn_status status, std::string_view what) {
        if (status != TN_OK) fail(detail::listed(status), "the host refused ", what, " of a decomposition");
    }
    tn_graph_sink t_;
};

/// Derive, and give it to Registrar::add. infer and decompose are pure and need no device (D13). [any]
class VendorOp {
public:
    VendorOp(Instance &instance, OpContract contract, bool decomposes)
        : instance_(instance), contract_(std::move(contract)), decomposes_(decomposes) {}
    VendorOp(const VendorOp &) = delete;
    VendorOp &operator=(const VendorOp &) = delete;
    virtual ~VendorOp() = default;

    /// Type and shape of each output. Throws where the operands don't fit.
    virtual std::vector<TensorShape> infer(const NodeView &node) const = 0;
    /// Called only if the op was made with decomposes = true.
    virtual void decompose(const NodeView &, GraphSink &) const {
        fail(TN_UNSUPPORTED, contract_.name, " has no decomposition");
    }

    const OpContract &contract() const noexcept { return contract_; }
    /// What the host gave it; 0 before.
    uint32_t id() const noexcept { return id_.load(std::memory_order_acquire); }
    HostRef host() const noexcept { return instance_.host(); }

private:
    friend class Registrar;
    inline tn_op_info info() const;

    Instance &instance_;
    const OpContract contract_;
    const bool decomposes_;
    std::atomic<uint32_t> id_{0};
};

namespace detail {

/// Runs a call of the host: exceptions end here, the text reaches the sink on this thread, with no lock held (D02,
/// D10).
template <class Body>
tn_status guard(HostRef host, Body &&body) noexcept {
    Failure failure;
    if (attempt(failure, body)) return TN_OK;
    if (needs_text(failure.status)) host.error(failure.status, failure.text);
    return failure.status;
}

inline tn_status vendor_infer(void *ctx, const tn_graph *graph, const tn_node *node, uint64_t stride,
                              tn_value *out) noexcept {
    const auto &op = *static_cast<const VendorOp *>(ctx);
    return guard(op.host(), [&] {
        const auto own = GraphReader::read(graph, node);
        const std::vector<TensorShape> shapes = op.infer(own->node(0));
        if (shapes.size() != own->node(0).outputs.size())
            fail(TN_INTERNAL, op.contract().name, ": wrong number of outputs");
        if (stride < TN_V1_VALUE || stride % alignof(tn_value) != 0)
            fail(TN_INVALID_ARGUMENT, "stride ", stride, " isn't right");
        std::vector<tn_value> values;
        for (const TensorShape &shape : shapes) values.push_back(GraphSink::describe(shape));
        auto at = [&](size_t i) { return reinterpret_cast<tn_value *>(reinterpret_cast<char *>(out) + i * stride); };
        if (!values.empty()) need(out, "the outputs");
        for (size_t i = 0; i < values.size(); ++i) check_output(at(i));
        for (size_t i = 0; i < values.size(); ++i) tn_write(at(i), &values[i]);
    });
}

inline tn_status vendor_decompose(void *ctx, const tn_graph *graph, const tn_node *node,
                                  const tn_graph_sink *sink) noexcept {
    const auto &op = *static_cast<const VendorOp *>(ctx);
    return guard(op.host(), [&] {
        const auto own = GraphReader::read(graph, node);
        GraphSink to(read_struct(sink));
        op.decompose(own->node(0), to);
    });
}

}  // namespace detail

tn_op_info VendorOp::info() const {
    auto info = make_struct<tn_op_info>();
    info.name = contract_.name.c_str(), info.version = contract_.version;
    info.min_inputs = contract_.min_inputs, info.max_inputs = contract_.max_inputs,
    info.output_count = contract_.outputs;
    info.params_bytes = contract_.params_bytes;
    info.ctx = const_cast<VendorOp *>(this);
    info.infer = detail::vendor_infer;
    info.decompose = decomposes_ ? detail::vendor_decompose : nullptr;
    return info;
}

}  // namespace tenon::plugin
#endif
