// From the host's descriptors to checked copies: everything that graph.hpp promises is established here.
#ifndef TENON_PLUGIN_GRAPH_READ_HPP
#define TENON_PLUGIN_GRAPH_READ_HPP

#include "tenon/plugin/graph.hpp"

namespace tenon::plugin {
namespace detail {

inline constexpr uint32_t kValueFlags = TN_VALUE_INPUT | TN_VALUE_WEIGHT | TN_VALUE_STATE | TN_VALUE_OBSERVED;
inline constexpr uint64_t kMaxBytes = INT64_MAX;  // no tensor spans more

inline uint64_t mul_checked(uint64_t a, uint64_t b, std::string_view what) {
    uint64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product) || product > kMaxBytes)
        fail(TN_INVALID_ARGUMENT, what, ": size overflows");
    return product;
}

inline uint64_t add_checked(uint64_t a, uint64_t b, std::string_view what) {
    uint64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum) || sum > kMaxBytes) fail(TN_INVALID_ARGUMENT, what, ": size overflows");
    return sum;
}

inline void check_block_layout(const ValueView &v, std::string_view what) {
    const TypeInfo &t = *v.info;
    if (t.is_block()) {
        if (v.rank == 0) fail(TN_INVALID_ARGUMENT, what, ": ", t.name, " can't be a scalar");
        if (v.last() % t.block_elements != 0) {
            fail(TN_INVALID_ARGUMENT, what, ": last dimension ", v.last(), " isn't whole blocks of ", t.name);
        }
        if (v.last() > t.block_elements && v.inner_stride(0) != t.block_bytes) {
            fail(TN_INVALID_ARGUMENT, what, ": blocks of ", t.name, " must be contiguous in the last dimension");
        }
        return;
    }
    for (uint32_t i = 0; i < v.rank; ++i) {
        if (v.shape[i] > 1 && v.stride[i] % t.block_bytes != 0) {
            fail(TN_INVALID_ARGUMENT, what, ": stride ", v.stride[i], " isn't whole elements of ", t.name);
        }
    }
}

/// Rank, sizes, strides, flags, overflow. A type that isn't known passes with info = 0.
inline ValueView read_value(const tn_value &from, std::string_view what) {
    ValueView v;
    if (from.rank > TN_MAX_RANK) fail(TN_INVALID_ARGUMENT, what, ": rank ", from.rank, " is over ", TN_MAX_RANK);
    if ((from.flags & ~kValueFlags) != 0) fail(TN_INVALID_ARGUMENT, what, ": unlisted flags ", from.flags);
    check_zero(from.reserved, what);
    v.type = from.type, v.rank = from.rank, v.flags = from.flags;
    v.buffer_type = from.buffer_type, v.view_of = from.view_of, v.offset = from.offset, v.cookie = from.cookie;
    v.name = from.name != nullptr ? from.name : "";
    v.info = find_type(from.type);
    v.shape.fill(1);
    const uint64_t unit = v.info != nullptr ? v.info->block_bytes : 1;
    uint64_t total = unit, end = unit;
    bool empty = false;
    for (uint32_t i = 0; i < v.rank; ++i) {
        v.shape[i] = from.shape[i], v.stride[i] = from.stride_bytes[i];
        if (v.shape[i] < 0 || v.stride[i] < 0) fail(TN_INVALID_ARGUMENT, what, ": a size or stride is negative");
        empty = empty || v.shape[i] == 0;
        // an empty tensor's other sizes must not overflow either: rows and row bytes are computed from them
        total = mul_checked(total, static_cast<uint64_t>(std::max<int64_t>(v.shape[i], 1)), what);
        const auto steps = static_cast<uint64_t>(std::max<int64_t>(v.shape[i], 1) - 1);
        end = add_checked(end, mul_checked(steps, static_cast<uint64_t>(v.stride[i]), what), what);
    }
    if (v.info != nullptr) check_block_layout(v, what);
    add_checked(empty ? 0 : end, v.offset, what);
    return v;
}

/// A tensor of a buffer or stream call: its type must be known, view_of and buffer_type have no meaning.
inline ValueView read_tensor(const tn_value *from) {
    const tn_value own = read_struct(from);
    ValueView v = read_value(own, "tensor");
    if (v.info == nullptr) fail(TN_UNSUPPORTED, "tensor '", v.name, "': type ", v.type, " is unknown");
    v.view_of = v.buffer_type = TN_NONE;
    return v;
}

inline BufferTypeView read_buffer_type(const tn_buffer_type_info &from) {
    BufferTypeView type;
    type.name = from.name != nullptr ? from.name : "";
    std::copy(std::begin(from.owner), std::end(from.owner), type.owner.begin());
    type.memory = from.memory, type.flags = from.flags, type.alignment = from.alignment,
    type.max_bytes = from.max_bytes;
    if (type.alignment == 0 || (type.alignment & (type.alignment - 1)) != 0) {
        fail(TN_INVALID_ARGUMENT, "buffer type '", type.name, "': alignment ", type.alignment, " isn't a power of two");
    }
    return type;
}

}  // namespace detail

/// Fills a GraphView. One object a read.
class GraphReader {
public:
    /// A whole segment. Throws TN_INVALID_ARGUMENT for whatever breaks the descriptors' contract.
    static std::shared_ptr<const GraphView> read(const tn_graph *from) {
        GraphReader reader(from);
        reader.read_types();
        reader.read_values();
        const SpanView<tn_node> nodes(reader.from_.nodes, reader.from_.node_count, reader.from_.node_stride);
        reader.count_operands(nodes);
        for (uint64_t i = 0; i < nodes.size(); ++i) reader.read_node(nodes[i], static_cast<uint32_t>(i));
        return reader.out_;
    }

    /// Values alone, and one node that indexes them: what infer and decompose receive. Its outputs aren't described
    /// yet: they read as scalars.
    static std::shared_ptr<const GraphView> read(const tn_graph *from, const tn_node *node) {
        GraphReader reader(from);
        const tn_node own = read_struct(node);
        if (own.output_count != 0) need(own.outputs, "a node's outputs");
        reader.read_types();
        reader.read_values({own.outputs, own.output_count});
        reader.reserve(1, uint64_t{own.input_count} + own.output_count);
        reader.read_node(own, 0);
        return reader.out_;
    }

private:
    explicit GraphReader(const tn_graph *from) : from_(read_struct(from)), out_(std::make_shared<GraphView>()) {
        if (from_.value_count >= TN_NONE || from_.node_count >= TN_NONE)
            fail(TN_INVALID_ARGUMENT, "graph: too many parts");
    }

    void read_types() {
        const SpanView<tn_buffer_type_info> types(from_.buffer_types, from_.buffer_type_count,
                                                  from_.buffer_type_stride);
        for (uint64_t i = 0; i < types.size(); ++i) out_->types_.push_back(detail::read_buffer_type(types[i]));
    }

    void read_values(std::span<const uint32_t> not_yet = {}) {
        const SpanView<tn_value> values(from_.values, from_.value_count, from_.value_stride);
        auto &own = out_->values_;
        own.reserve(values.size());
        for (uint64_t i = 0; i < values.size(); ++i) {
            const bool later = std::find(not_yet.begin(), not_yet.end(), i) != not_yet.end();
            own.push_back(later ? detail::read_value(GraphReader::scalar(), "")
                                : detail::read_value(values[i], join("value ", i)));
            own.back().index = static_cast<uint32_t>(i);
            own.back().cookie = 0;
        }
        for (const ValueView &v : own) check_references(v);
        size_t text_bytes = 0;
        for (const ValueView &v : own) text_bytes += v.name.size();
        out_->names_.reserve(text_bytes);  // so that what points into it stays
        for (ValueView &v : own) {
            const size_t begin = out_->names_.size();
            out_->names_ += v.name;
            v.name = std::string_view(out_->names_).substr(begin, v.name.size());
        }
    }

    static tn_value scalar() {
        auto value = make_struct<tn_value>();
        value.buffer_type = value.view_of = TN_NONE;
        return value;
    }

    void check_references(const ValueView &v) const {
        if (v.buffer_type != TN_NONE && v.buffer_type >= out_->types_.size()) {
            fail(TN_INVALID_ARGUMENT, "value ", v.index, ": buffer type ", v.buffer_type, " is out of range");
        }
        if (v.view_of == TN_NONE) return;
        if (v.view_of >= out_->values_.size())
            fail(TN_INVALID_ARGUMENT, "value ", v.index, ": view_of is out of range");
        const ValueView &base = out_->values_[v.view_of];
        if (base.view_of != TN_NONE) fail(TN_INVALID_ARGUMENT, "value ", v.index, ": is a view of a view");
        if (v.info == nullptr || base.info == nullptr) return;
        const uint64_t extent = v.extent(), room = base.extent();
        if (v.offset > room || extent > room - v.offset) {
            fail(TN_INVALID_ARGUMENT, "value ", v.index, ": view of ", extent, " bytes at ", v.offset,
                 " ends beyond its base of ", room);
        }
        if (v.offset % v.info->block_bytes != 0) {
            fail(TN_INVALID_ARGUMENT, "value ", v.index, ": offset ", v.offset, " isn't on a border of ", v.info->name);
        }
    }

    void reserve(uint64_t nodes, uint64_t operands) {
        out_->nodes_.reserve(nodes);
        out_->operands_.reserve(operands);
    }

    void count_operands(const SpanView<tn_node> &nodes) {
        uint64_t operands = 0;
        for (uint64_t i = 0; i < nodes.size(); ++i) {
            const tn_node n = nodes[i];
            operands = detail::add_checked(operands, uint64_t{n.input_count} + n.output_count, "graph");
            if (n.input_count != 0) need(n.inputs, "a node's inputs");
            if (n.output_count != 0) need(n.outputs, "a node's outputs");
        }
        reserve(nodes.size(), operands);
    }

    std::span<const uint32_t> copy_operands(const uint32_t *from, uint32_t count) {
        auto &pool = out_->operands_;  // has room for all: spans into it stay
        const size_t begin = pool.size();
        if (count != 0) pool.insert(pool.end(), need(from, "a node's operands"), from + count);
        return {pool.data() + begin, count};
    }

    void read_node(const tn_node &from, uint32_t index) {
        NodeView n;
        n.graph = out_.get(), n.index = index, n.op = from.op, n.precision = from.precision;
        if (n.precision > TN_PRECISION_EXACT) fail(TN_INVALID_ARGUMENT, "node ", index, ": precision ", n.precision);
        n.inputs = copy_operands(from.inputs, from.input_count);
        n.outputs = copy_operands(from.outputs, from.output_count);
        const size_t count = out_->values_.size();
        for (uint32_t v : n.inputs) {
            if (v != TN_NONE && v >= count)
                fail(TN_INVALID_ARGUMENT, "node ", index, ": input ", v, " is out of range");
        }
        for (uint32_t v : n.outputs) {
            if (v >= count) fail(TN_INVALID_ARGUMENT, "node ", index, ": output ", v, " is out of range");
        }
        read_params(from.params, n);
        if (const OpInfo *op = find_op(n.op)) check_standard(n, *op);
        out_->nodes_.push_back(n);
    }

    void read_params(const void *from, NodeView &n) {
        if (from == nullptr) return;
        const uint64_t bytes = *static_cast<const uint64_t *>(from);
        if (bytes < kHeadBytes || bytes > 1u << 20) {
            fail(TN_INVALID_ARGUMENT, "node ", n.index, ": params of ", bytes, " bytes");
        }
        const void *next = nullptr;
        std::memcpy(&next, static_cast<const char *>(from) + sizeof(uint64_t), sizeof next);
        check_extensions(next, "params");
        auto &block = out_->param_blocks_.emplace_back(std::make_unique<uint64_t[]>((bytes + 7) / 8));
        std::memcpy(block.get(), from, bytes);
        std::memset(block.get() + 1, 0, sizeof(void *));  // the chain is the host's
        n.params_words = {block.get(), (bytes + 7) / 8};
        const OpInfo *op = find_op(n.op);
        const auto *raw = static_cast<const unsigned char *>(from);
        if (op == nullptr) return;  // a vendor knows its own sizes
        for (uint64_t i = std::max(op->params_bytes, kHeadBytes); i < bytes; ++i) n.later_params |= raw[i] != 0;
    }

    static void check_standard(const NodeView &n, const OpInfo &op) {
        if (op.kind == OpKind::kReserved) return;  // has no contract yet; no plugin answers yes
        if (n.inputs.size() < op.min_inputs || n.inputs.size() > op.max_inputs || n.outputs.size() != op.outputs) {
            fail(TN_INVALID_ARGUMENT, "node ", n.index, " (", op.name, "): ", n.inputs.size(), " inputs and ",
                 n.outputs.size(), " outputs");
        }
        for (size_t i = 0; i < op.min_inputs; ++i) {
            if (!n.has_input(i))
                fail(TN_INVALID_ARGUMENT, "node ", n.index, " (", op.name, "): input ", i, " is missing");
        }
        if (op.params_bytes == 0) return;
        if (n.params_words.empty() || n.params_words[0] < op.params_bytes) {
            fail(TN_INVALID_ARGUMENT, "node ", n.index, " (", op.name, "): params are missing or too short");
        }
        check_reserved_words(n);
    }

    template <class P>
    static void zero_reserved(const NodeView &n) {
        check_zero(n.params<P>().reserved, "params");
    }

    static void check_reserved_words(const NodeView &n) {
        switch (n.op) {
            case TN_OP_CONCAT: return zero_reserved<tn_params_concat>(n);
            case TN_OP_TOP_K: return zero_reserved<tn_params_top_k>(n);
            case TN_OP_SOFTMAX: return zero_reserved<tn_params_softmax>(n);
            case TN_OP_RMS_NORM:
            case TN_OP_LAYER_NORM: return zero_reserved<tn_params_norm>(n);
            case TN_OP_ROPE: return zero_reserved<tn_params_rope>(n);
            case TN_OP_ROUTE: return zero_reserved<tn_params_route>(n);
            default: return;
        }
    }

    static constexpr uint64_t kHeadBytes = sizeof(uint64_t) + sizeof(void *);

    tn_graph from_;
    std::shared_ptr<GraphView> out_;
};

}  // namespace tenon::plugin
#endif
