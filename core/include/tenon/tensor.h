// Shapes, and tensors that lie in buffers. Every size is checked against the buffer before anything is read or written.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tenon/device.h"
#include "tenon/dtype.h"
#include "tenon/status.h"

namespace tenon {

/// Up to TN_MAX_RANK sizes, row-major, the last dimension innermost. Rank 0 is a scalar. A longer list is cut to an
/// invalid shape (rank() > TN_MAX_RANK), which whoever takes it refuses.
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<int64_t> sizes) : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}
    explicit Shape(std::span<const int64_t> sizes);

    uint32_t rank() const { return rank_; }
    int64_t operator[](size_t i) const { return sizes_[i]; }
    int64_t &operator[](size_t i) { return sizes_[i]; }
    int64_t back() const { return rank_ ? sizes_[rank_ - 1] : 1; }
    std::span<const int64_t> sizes() const { return {sizes_.data(), std::min<size_t>(rank_, TN_MAX_RANK)}; }
    /// The number of elements; nothing where it overflows int64, a size is negative or the rank too high.
    std::optional<int64_t> elements() const;
    bool operator==(const Shape &other) const {
        return rank_ == other.rank_ && std::ranges::equal(sizes(), other.sizes());
    }

private:
    uint32_t rank_ = 0;
    std::array<int64_t, TN_MAX_RANK> sizes_{};
};

/// "[2, 3]".
std::string to_string(const Shape &shape);

/// Strides in bytes of a contiguous tensor, past the rank 0. Block types: the last stride is a block's bytes.
std::array<int64_t, TN_MAX_RANK> contiguous_strides(DType type, const Shape &shape);

/// A value's description for the ABI: type, shape, contiguous strides, no flags, no view. `name` must outlive it.
tn_value describe(DType type, const Shape &shape, const char *name);

struct TensorSpec {
    std::string name;
    DType type = DType::f32;
    Shape shape;
};

/// A contiguous tensor in a buffer, which it keeps alive. A value; copies name the same bytes. Moves bytes at once: not
/// while a run that uses it is in flight.
class Tensor {
public:
    Tensor() = default;
    /// Names bytes of a buffer that is there: checks alignment, whole blocks and that the tensor ends inside the
    /// buffer, and lets the plugin initialise it. Errors name the tensor.
    static Result<Tensor> in_buffer(std::shared_ptr<Buffer> buffer, uint64_t offset, const TensorSpec &spec);

    bool empty() const { return buffer_ == nullptr; }
    const std::shared_ptr<Buffer> &buffer() const { return buffer_; }
    const std::string &name() const { return spec_->name; }
    DType type() const { return spec_->type; }
    const Shape &shape() const { return spec_->shape; }
    uint64_t offset() const { return offset_; }
    uint64_t cookie() const { return cookie_; }
    uint64_t canonical_bytes() const { return bytes_; }
    /// As buffer calls want it: offset and cookie set; the name lives as long as any copy of the tensor.
    tn_value descriptor() const;

    Status set(uint64_t offset, std::span<const std::byte> bytes);
    Status get(uint64_t offset, std::span<std::byte> bytes) const;
    Status clear();

private:
    std::shared_ptr<Buffer> buffer_;
    std::shared_ptr<const TensorSpec> spec_;
    uint64_t offset_ = 0, cookie_ = 0, bytes_ = 0;
};

/// Allocates tensors of one buffer type, packed one behind the other at its alignment, in as few buffers as its
/// max_bytes allows. Contents are undefined. All or nothing; errors name type, tensor and bytes.
Result<std::vector<Tensor>> allocate_tensors(const BufferType &type, std::span<const TensorSpec> specs, Usage usage);

/// Copies all elements between two tensors of one type and shape, wherever they lie, in pieces of bounded size.
Status copy_contents(const Tensor &from, Tensor &to);

}  // namespace tenon
