#include "tenon/tensor.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "base/no_throw.h"
#include "tensor/pieces.h"

namespace tenon {

Shape::Shape(std::span<const int64_t> sizes) {
    rank_ = uint32_t(std::min<size_t>(sizes.size(), TN_MAX_RANK + 1));
    std::copy_n(sizes.begin(), std::min<size_t>(sizes.size(), TN_MAX_RANK), sizes_.begin());
}

std::optional<int64_t> Shape::elements() const {
    if (rank_ > TN_MAX_RANK) return std::nullopt;
    int64_t count = 1;
    for (int64_t size : sizes())
        if (size < 0 || __builtin_mul_overflow(count, size, &count)) return std::nullopt;
    return count;
}

std::string to_string(const Shape &shape) {
    return fmt::format("[{}]", fmt::join(shape.sizes(), ", "));
}

std::array<int64_t, TN_MAX_RANK> contiguous_strides(DType type, const Shape &shape) {
    const DTypeInfo &info = dtype_info(type);
    std::array<int64_t, TN_MAX_RANK> strides{};
    int64_t step = info.block_bytes;
    for (uint32_t i = shape.rank(); i-- > 0;) {
        strides[i] = step;
        // An empty tensor keeps the strides that its other sizes give.
        const int64_t size = std::max<int64_t>(1, shape[i]);
        step *= i + 1 == shape.rank() ? std::max<int64_t>(1, size / info.block_elements) : size;
    }
    return strides;
}

tn_value describe(DType type, const Shape &shape, const char *name) {
    tn_value value{};
    value.struct_size = TN_SIZE_VALUE;
    value.type = uint32_t(type);
    value.rank = shape.rank();
    for (size_t i = 0; i < TN_MAX_RANK; ++i) value.shape[i] = i < shape.rank() ? shape[i] : 1;
    const auto strides = contiguous_strides(type, shape);
    std::copy(strides.begin(), strides.end(), value.stride_bytes);
    value.buffer_type = TN_NONE;
    value.view_of = TN_NONE;
    value.name = name;
    return value;
}

namespace {

Result<uint64_t> checked_bytes(const TensorSpec &spec) {
    if (spec.shape.rank() > TN_MAX_RANK)
        return Status::invalid_argument(fmt::format("tensor '{}': more than {} dimensions", spec.name, TN_MAX_RANK));
    const auto bytes = canonical_bytes(spec.type, spec.shape.sizes());
    if (!bytes)
        return Status::invalid_argument(fmt::format("tensor '{}': {} has no size in {} (blocks of {} elements)",
                                                    spec.name, to_string(spec.shape), dtype_info(spec.type).name,
                                                    dtype_info(spec.type).block_elements));
    return uint64_t(*bytes);
}

}  // namespace

Result<Tensor> Tensor::in_buffer(std::shared_ptr<Buffer> buffer, uint64_t offset, const TensorSpec &spec) {
    return no_throw([&]() -> Result<Tensor> {
        if (!buffer) return Status::invalid_argument(fmt::format("tensor '{}': there is no buffer", spec.name));
        TENON_ASSIGN(const uint64_t bytes, checked_bytes(spec));
        tn_value value = describe(spec.type, spec.shape, spec.name.c_str());
        TENON_ASSIGN(const uint64_t stored, buffer->type().tensor_bytes(value));
        if (offset > buffer->bytes() || stored > buffer->bytes() - offset)
            return Status::invalid_argument(fmt::format("tensor '{}': {} bytes at {} don't fit a buffer of {} bytes",
                                                        spec.name, stored, offset, buffer->bytes()));
        value.offset = offset;
        Tensor tensor;
        TENON_ASSIGN(tensor.cookie_, buffer->init_tensor(value));
        tensor.buffer_ = std::move(buffer);
        tensor.spec_ = std::make_shared<const TensorSpec>(spec);
        tensor.offset_ = offset;
        tensor.bytes_ = bytes;
        return tensor;
    });
}

tn_value Tensor::descriptor() const {
    tn_value value = describe(spec_->type, spec_->shape, spec_->name.c_str());
    value.offset = offset_;
    value.cookie = cookie_;
    return value;
}

Status Tensor::set(uint64_t offset, std::span<const std::byte> bytes) {
    return no_throw([&]() -> Status {
        if (empty()) return Status::invalid_state("an empty tensor can't be set");
        return buffer_->set(descriptor(), offset, bytes.data(), bytes.size());
    });
}

Status Tensor::get(uint64_t offset, std::span<std::byte> bytes) const {
    return no_throw([&]() -> Status {
        if (empty()) return Status::invalid_state("an empty tensor can't be read");
        return buffer_->get(descriptor(), offset, bytes.data(), bytes.size());
    });
}

Status Tensor::clear() {
    return no_throw([&]() -> Status {
        if (empty()) return Status::invalid_state("an empty tensor can't be cleared");
        return buffer_->fill(descriptor(), 0, bytes_, 0);
    });
}

Result<std::vector<Tensor>> allocate_tensors(const BufferType &type, std::span<const TensorSpec> specs, Usage usage) {
    return no_throw([&]() -> Result<std::vector<Tensor>> {
        struct Place {
            size_t buffer;
            uint64_t offset;
        };
        std::vector<Place> places;
        std::vector<uint64_t> buffer_bytes;
        for (const TensorSpec &spec : specs) {
            TENON_TRY(checked_bytes(spec).status());
            TENON_ASSIGN(const uint64_t bytes, type.tensor_bytes(describe(spec.type, spec.shape, spec.name.c_str())));
            if (type.max_bytes() && bytes > type.max_bytes())
                return Status::out_of_memory(
                    fmt::format("tensor '{}' takes {} bytes, but a buffer of {} holds at most {}", spec.name, bytes,
                                type.name(), type.max_bytes()));
            std::optional<uint64_t> end;
            uint64_t start = 0;
            if (!buffer_bytes.empty()) {
                if (auto aligned = align_up(buffer_bytes.back(), type.alignment())) {
                    start = *aligned;
                    end = add(start, bytes);
                }
            }
            if (!end || (type.max_bytes() && *end > type.max_bytes())) {
                buffer_bytes.push_back(0);
                start = 0;
                end = bytes;
            }
            buffer_bytes.back() = *end;
            places.push_back({buffer_bytes.size() - 1, start});
        }
        std::vector<std::shared_ptr<Buffer>> buffers;
        for (uint64_t bytes : buffer_bytes) {
            TENON_ASSIGN(auto buffer, type.alloc(bytes, usage));
            buffers.push_back(std::move(buffer));
        }
        std::vector<Tensor> tensors;
        tensors.reserve(specs.size());
        for (size_t i = 0; i < specs.size(); ++i) {
            TENON_ASSIGN(auto tensor, Tensor::in_buffer(buffers[places[i].buffer], places[i].offset, specs[i]));
            tensors.push_back(std::move(tensor));
        }
        return tensors;
    });
}

Status copy_contents(const Tensor &from, Tensor &to) {
    if (from.empty() || to.empty() || from.type() != to.type() || from.shape() != to.shape())
        return Status::invalid_argument("contents are copied between tensors of one type and shape");
    return no_throw([&] {
        return in_pieces(from.type(), from.shape(), [&](uint64_t at, std::span<std::byte> piece) -> Status {
            TENON_TRY(from.get(at, piece));
            return to.set(at, piece);
        });
    });
}

}  // namespace tenon
