// Descriptors as plain C++ copies: values, nodes and graphs that were checked in full before plugin code sees them, so
// that kernels can trust ranks, sizes, indices, strides and bounds. graph_read.hpp does the checking.
#ifndef TENON_PLUGIN_GRAPH_HPP
#define TENON_PLUGIN_GRAPH_HPP

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/plugin/structs.hpp"
#include "tenon/plugin/types.hpp"

namespace tenon::plugin {

/// A tensor. Every number here was checked: rank <= 8, sizes and strides >= 0, no product overflows, and of a type that
/// is known: block types have whole contiguous blocks, strides of plain types are whole elements. Entries past rank are
/// 1 and 0. Trivially copyable; name points into the graph that holds the value, or into the call that it came with.
struct ValueView {
    uint32_t index = TN_NONE;  // in its graph
    uint32_t type = 0;         // dtypes.def
    uint32_t rank = 0;
    std::array<int64_t, TN_MAX_RANK> shape{};
    std::array<int64_t, TN_MAX_RANK> stride{};  // bytes
    uint32_t flags = 0;                         // TN_VALUE_
    uint32_t buffer_type = TN_NONE;
    uint32_t view_of = TN_NONE;
    uint64_t offset = 0;  // bytes
    uint64_t cookie = 0;
    std::string_view name;
    const TypeInfo *info = nullptr;  // 0: a type that this header doesn't list; such values reach no kernel

    bool is(uint32_t wanted_type) const noexcept { return type == wanted_type; }
    bool has(uint32_t flag) const noexcept { return (flags & flag) != 0; }
    /// Size of dimension i, counted from the innermost (0). 1 past the rank.
    int64_t inner(uint32_t i) const noexcept { return i < rank ? shape[rank - 1 - i] : 1; }
    int64_t inner_stride(uint32_t i) const noexcept { return i < rank ? stride[rank - 1 - i] : 0; }
    int64_t last() const noexcept { return inner(0); }

    int64_t elements() const noexcept {
        int64_t n = 1;
        for (uint32_t i = 0; i < rank; ++i) n *= shape[i];
        return n;
    }
    /// Rows: elements / last dimension; 0 where the last dimension is empty.
    int64_t rows() const noexcept { return last() == 0 ? 0 : elements() / last(); }
    bool is_empty() const noexcept { return elements() == 0; }
    /// Bytes of a contiguous tensor of this type and shape. Needs info, as the three below.
    uint64_t bytes() const noexcept {
        return static_cast<uint64_t>(elements()) / info->block_elements * info->block_bytes;
    }
    uint64_t row_bytes() const noexcept {
        return static_cast<uint64_t>(last()) / info->block_elements * info->block_bytes;
    }
    /// Bytes from element 0 to the end of the element furthest from it: what the strides span.
    uint64_t extent() const noexcept {
        if (is_empty()) return 0;
        uint64_t end = info->block_bytes;
        for (uint32_t i = 0; i < rank; ++i)
            end += static_cast<uint64_t>(count(i) - 1) * static_cast<uint64_t>(stride[i]);
        return end;
    }
    /// Row-major without gaps. Strides of dimensions of size 1 don't matter.
    bool is_contiguous() const noexcept { return inner_contiguous() == rank || is_empty(); }
    /// How many of the innermost dimensions lie row-major without gaps among themselves.
    uint32_t inner_contiguous() const noexcept {
        int64_t step = info->block_bytes;
        for (uint32_t i = rank; i-- > 0; step *= count(i)) {
            if (shape[i] != 1 && stride[i] != step) return rank - 1 - i;
        }
        return rank;
    }
    /// Whether the elements of a row lie side by side.
    bool rows_contiguous() const noexcept { return rank == 0 || inner_contiguous() >= 1; }
    bool is_broadcast() const noexcept {
        for (uint32_t i = 0; i < rank; ++i) {
            if (shape[i] > 1 && stride[i] == 0) return true;
        }
        return false;
    }
    bool same_shape(const ValueView &other) const noexcept { return rank == other.rank && shape == other.shape; }

private:
    /// Steps along dimension i: blocks in the last dimension of block types, else elements.
    int64_t count(uint32_t i) const noexcept { return i + 1 == rank ? shape[i] / info->block_elements : shape[i]; }
};

/// Walks canonical bytes [offset, offset + bytes) of a tensor with any strides: f(at, from, n) for each piece without
/// gaps, where at counts from element 0 in memory and from counts from the range's begin. The range must lie in the
/// tensor.
template <class F>
void for_each_piece(const ValueView &value, uint64_t offset, uint64_t bytes, F &&f) {
    const uint32_t inner = value.inner_contiguous(), outer = value.rank - inner;
    uint64_t piece = value.info->block_bytes;
    for (uint32_t i = outer; i < value.rank; ++i) piece *= static_cast<uint64_t>(value.shape[i]);
    if (inner > 0) piece /= value.info->block_elements;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t index = (offset + done) / piece, within = (offset + done) % piece, at = within;
        for (uint32_t i = outer; i-- > 0;) {
            const auto size = static_cast<uint64_t>(value.shape[i]);
            at += index % size * static_cast<uint64_t>(value.stride[i]);
            index /= size;
        }
        const uint64_t n = std::min(piece - within, bytes - done);
        f(at, done, n);
        done += n;
    }
}

/// A buffer type as described by whoever made it.
struct BufferTypeView {
    std::string name;
    std::array<uint8_t, 16> owner{};  // guid of the plugin
    uint32_t memory = TN_MEMORY_HOST;
    uint32_t flags = 0;  // TN_TYPE_
    uint64_t alignment = 1, max_bytes = 0;

    /// The CPU can read and write it, and the layout is canonical.
    bool is_plain_host() const noexcept { return (flags & TN_TYPE_IS_HOST) != 0 && (flags & TN_TYPE_PACKED) == 0; }
};

class GraphView;

/// A node. Its indices are right: outputs always, inputs where they aren't TN_NONE. For a standard op the counts are
/// those of ops.def, required inputs are there, and the params struct has at least its 1.0 size.
struct NodeView {
    const GraphView *graph = nullptr;
    uint32_t index = 0;
    uint32_t op = 0;  // ops.def or a vendor's
    uint32_t precision = TN_PRECISION_FAST;
    std::span<const uint32_t> inputs, outputs;
    std::span<const uint64_t> params_words;  // the params struct as received, head included; empty: none
    bool later_params = false;               // has parameters that this header doesn't know, and they aren't zero

    bool has_input(size_t i) const noexcept { return i < inputs.size() && inputs[i] != TN_NONE; }
    /// Precondition: has_input(i).
    inline const ValueView &input(size_t i) const noexcept;
    inline const ValueView &output(size_t i = 0) const noexcept;
    /// The params struct, absent fields zero; all zero where the node has none.
    template <class T>
    T params() const {
        T own{};
        if (!params_words.empty()) tn_read(&own, sizeof(T), params_words.data());
        own.next = nullptr;
        return own;
    }
};

/// A segment, copied out of the host's memory. Never moves, so that nodes and names may be pointed at for as long as
/// the shared pointer that prepare received is kept.
class GraphView {
public:
    GraphView() = default;
    GraphView(const GraphView &) = delete;
    GraphView &operator=(const GraphView &) = delete;

    std::span<const ValueView> values() const noexcept { return values_; }
    std::span<const NodeView> nodes() const noexcept { return nodes_; }
    const ValueView &value(uint32_t i) const noexcept { return values_[i]; }
    const NodeView &node(uint32_t i) const noexcept { return nodes_[i]; }
    std::span<const BufferTypeView> buffer_types() const noexcept { return types_; }

    /// The value whose bytes v shares; v itself if it has its own.
    uint32_t base(uint32_t v) const noexcept { return values_[v].view_of == TN_NONE ? v : values_[v].view_of; }
    /// Where v is bound already; 0: not bound, it will lie in the device's default buffer type.
    const BufferTypeView *buffer_type_of(uint32_t v) const noexcept {
        const uint32_t own = values_[v].buffer_type, i = own != TN_NONE ? own : values_[base(v)].buffer_type;
        return i == TN_NONE ? nullptr : &types_[i];
    }
    /// "node 3 (add)": for messages.
    std::string describe(const NodeView &node) const {
        const OpInfo *op = find_op(node.op);
        return join("node ", node.index, " (", op != nullptr ? op->name : std::string_view("vendor op"), ")");
    }

private:
    friend class GraphReader;
    std::vector<ValueView> values_;
    std::vector<NodeView> nodes_;
    std::vector<BufferTypeView> types_;
    std::vector<uint32_t> operands_;
    std::vector<std::unique_ptr<uint64_t[]>> param_blocks_;
    std::string names_;
};

const ValueView &NodeView::input(size_t i) const noexcept {
    return graph->value(inputs[i]);
}
const ValueView &NodeView::output(size_t i) const noexcept {
    return graph->value(outputs[i]);
}

}  // namespace tenon::plugin
#endif
