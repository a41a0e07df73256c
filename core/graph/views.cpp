// Views: values that name bytes of another. Everything is composed down to the base, so that a view of a view is a
// view.
#include <fmt/format.h>

#include "graph/guarded.h"
#include "graph/op_contract.h"
#include "tenon/graph.h"

namespace tenon {

bool is_contiguous(const Value &value) {
    const auto strides = contiguous_strides(value.type, value.shape);
    const auto count = value.shape.elements();
    if (count && *count == 0) return true;
    for (uint32_t i = 0; i < value.shape.rank(); ++i)
        if (value.shape[i] != 1 && value.stride_bytes[i] != strides[i]) return false;
    return true;
}

ValueId GraphBuilder::add_view(ValueId x, const Shape &shape, std::span<const int64_t> strides, uint64_t offset) {
    const Value &source = values_[x];
    Value view;
    view.type = source.type;
    view.shape = shape;
    std::copy(strides.begin(), strides.end(), view.stride_bytes.begin());
    view.view_of = bases_[x];
    view.offset = source.offset + offset;
    view.name = source.name;
    return add_value(view);
}

ValueId GraphBuilder::reshape(ValueId x, Shape shape) {
    return guarded(k_no_value, [&] {
        if (!known(x)) return k_no_value;
        const Value &source = values_[x];
        if (source.shape == shape) return x;
        const auto bytes = canonical_bytes(source.type, shape.sizes());
        if (shape.rank() > TN_MAX_RANK || !bytes || bytes != canonical_bytes(source.type, source.shape.sizes()))
            return fail(Status::invalid_argument(fmt::format("reshape of '{}': {} to {} isn't the same elements",
                                                             source.name, to_string(source.shape), to_string(shape))));
        if (!is_contiguous(source))
            return fail(Status::invalid_argument(
                fmt::format("reshape of '{}': its elements don't lie in order; copy it first", source.name)));
        return add_view(x, shape, contiguous_strides(source.type, shape), 0);
    });
}

ValueId GraphBuilder::slice(ValueId x, uint32_t axis, int64_t start, int64_t size, int64_t step) {
    return guarded(k_no_value, [&] {
        if (!known(x)) return k_no_value;
        const Value &source = values_[x];
        const DTypeInfo &type = dtype_info(source.type);
        const bool last = axis + 1 == source.shape.rank();
        const bool inside =
            axis < source.shape.rank() && start >= 0 && size >= 0 && step >= 1 &&
            (size == 0 ? start <= source.shape[axis]
                       : start < source.shape[axis] && (size - 1) <= (source.shape[axis] - 1 - start) / step);
        if (!inside)
            return fail(Status::invalid_argument(
                fmt::format("slice of '{}': {} elements from {} by {} don't lie in axis {} of {}", source.name, size,
                            start, step, axis, to_string(source.shape))));
        if (last && type.block_elements > 1 && (step != 1 || start % type.block_elements || size % type.block_elements))
            return fail(Status::invalid_argument(fmt::format("slice of '{}': {} is cut only between blocks of {}",
                                                             source.name, type.name, type.block_elements)));
        Shape shape = source.shape;
        shape[axis] = size;
        auto strides = source.stride_bytes;
        const int64_t steps = last ? start / type.block_elements : start;
        const uint64_t offset = uint64_t(steps * strides[axis]);
        strides[axis] *= step;
        return add_view(x, shape, strides, offset);
    });
}

ValueId GraphBuilder::permute(ValueId x, std::span<const uint32_t> order) {
    return guarded(k_no_value, [&] {
        if (!known(x)) return k_no_value;
        const Value &source = values_[x];
        const uint32_t rank = source.shape.rank();
        Shape shape = source.shape;
        auto strides = source.stride_bytes;
        uint32_t seen = 0;
        bool valid = order.size() == rank;
        for (uint32_t i = 0; valid && i < rank; ++i) {
            valid = order[i] < rank && !(seen & 1u << order[i]);
            if (!valid) break;
            seen |= 1u << order[i];
            shape[i] = source.shape[order[i]];
            strides[i] = source.stride_bytes[order[i]];
        }
        if (!valid)
            return fail(
                Status::invalid_argument(fmt::format("permute of '{}': no order of {} dimensions", source.name, rank)));
        if (dtype_info(source.type).block_elements > 1 && order[rank - 1] != rank - 1)
            return fail(Status::invalid_argument(
                fmt::format("permute of '{}': the last dimension of block types stays", source.name)));
        return add_view(x, shape, strides, 0);
    });
}

ValueId GraphBuilder::broadcast(ValueId x, Shape shape) {
    return guarded(k_no_value, [&] {
        if (!known(x)) return k_no_value;
        const Value &source = values_[x];
        const uint32_t rank = source.shape.rank();
        std::array<int64_t, TN_MAX_RANK> strides{};
        bool valid = shape.rank() <= TN_MAX_RANK && rank <= shape.rank() && dtype_info(source.type).block_elements == 1;
        for (uint32_t i = 0; valid && i < rank; ++i) {
            const uint32_t to = shape.rank() - rank + i;
            valid = shape[to] >= 0 && (source.shape[i] == shape[to] || source.shape[i] == 1);
            if (source.shape[i] == shape[to]) strides[to] = source.stride_bytes[i];
        }
        if (!valid)
            return fail(Status::invalid_argument(fmt::format("broadcast of '{}': {} doesn't spread to {}", source.name,
                                                             to_string(source.shape), to_string(shape))));
        return add_view(x, shape, strides, 0);
    });
}

}  // namespace tenon
