// Ready made: memory that the CPU addresses, from the host's allocator or imported, in the canonical layout.
#ifndef TENON_PLUGIN_HOST_BUFFER_HPP
#define TENON_PLUGIN_HOST_BUFFER_HPP

#include "tenon/plugin/objects_impl.hpp"

namespace tenon::plugin {

/// set, get, fill and copy for memory at an address of this process, any strides. What HostBuffer does, for buffers of
/// other kinds whose bytes the plugin can reach (an own heap, a mapped aperture).
namespace bytes {

inline void set(std::byte *base, const ValueView &tensor, uint64_t offset, const void *src, uint64_t count) {
    std::byte *to = base + tensor.offset;
    const auto *from = static_cast<const std::byte *>(src);
    for_each_piece(tensor, offset, count,
                   [&](uint64_t at, uint64_t done, uint64_t n) { std::memcpy(to + at, from + done, n); });
}

inline void get(const std::byte *base, const ValueView &tensor, uint64_t offset, void *dst, uint64_t count) {
    const std::byte *from = base + tensor.offset;
    auto *to = static_cast<std::byte *>(dst);
    for_each_piece(tensor, offset, count,
                   [&](uint64_t at, uint64_t done, uint64_t n) { std::memcpy(to + done, from + at, n); });
}

inline void fill(std::byte *base, const ValueView &tensor, uint64_t offset, uint64_t count, uint8_t byte) {
    std::byte *to = base + tensor.offset;
    for_each_piece(tensor, offset, count, [&](uint64_t at, uint64_t, uint64_t n) { std::memset(to + at, byte, n); });
}

/// Whole tensors of equal type and shape; memory that overlaps is copied as if through a third place.
inline void copy(std::byte *dst_base, const ValueView &dst, const std::byte *src_base, const ValueView &src) {
    if (dst.is_contiguous() && src.is_contiguous()) {
        if (!dst.is_empty()) std::memmove(dst_base + dst.offset, src_base + src.offset, dst.bytes());
        return;
    }
    std::vector<std::byte> whole(dst.bytes());
    get(src_base, src, 0, whole.data(), whole.size());
    set(dst_base, dst, 0, whole.data(), whole.size());
}

}  // namespace bytes

class HostBuffer : public Buffer {
public:
    /// From the host's allocator, aligned as the type says. Throws TN_OUT_OF_MEMORY.
    HostBuffer(BufferType &type, uint64_t bytes) : Buffer(type, bytes), owned_(true), writable_(true) {
        base_ = static_cast<std::byte *>(host().alloc(bytes, type.view().alignment));
    }
    /// Over memory that stays the host's.
    HostBuffer(BufferType &type, void *memory, uint64_t bytes, bool writable)
        : Buffer(type, bytes), base_(static_cast<std::byte *>(memory)), owned_(false), writable_(writable) {}
    ~HostBuffer() override {
        if (owned_) host().dealloc(base_, bytes(), type().view().alignment);
    }

    void *base() const noexcept override { return base_; }
    bool writable() const noexcept { return writable_; }
    void set(const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) override {
        check_writable();
        bytes::set(base_, tensor, offset, src, bytes);
    }
    void get(const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) override {
        bytes::get(base_, tensor, offset, dst, bytes);
    }
    void fill(const ValueView &tensor, uint64_t offset, uint64_t bytes, uint8_t byte) override {
        check_writable();
        bytes::fill(base_, tensor, offset, bytes, byte);
    }
    void clear(uint8_t byte) override {
        check_writable();
        if (bytes() != 0) std::memset(base_, byte, bytes());
    }
    bool can_copy_from(const ValueView &, const Buffer &src, const ValueView &) const override {
        return writable_ && src.type().view().is_plain_host();
    }
    void copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor) override {
        check_writable();
        bytes::copy(base_, dst, static_cast<const std::byte *>(src.base()), src_tensor);
    }

private:
    void check_writable() const {
        if (!writable_) fail(TN_DENIED, "the buffer was imported read-only");
    }

    std::byte *base_ = nullptr;
    const bool owned_, writable_;
};

/// Plain host memory. Imports what lies on its alignment.
class HostBufferType : public BufferType {
public:
    /// owner: a device or the instance. name: unique with the adapter's name, such as "acme.host".
    template <class Owner>
    HostBufferType(Owner &owner, std::string name, uint64_t alignment = 64)
        : BufferType(owner, BufferTypeView{.name = std::move(name),
                                           .owner = {},
                                           .memory = TN_MEMORY_HOST,
                                           .flags = TN_TYPE_IS_HOST | TN_TYPE_CAN_IMPORT,
                                           .alignment = alignment,
                                           .max_bytes = 0}) {}

    std::unique_ptr<Buffer> alloc(uint64_t bytes, uint32_t) override {
        return std::make_unique<HostBuffer>(*this, bytes);
    }
    std::unique_ptr<Buffer> import_host(void *memory, uint64_t bytes, bool writable) override {
        if (reinterpret_cast<uintptr_t>(memory) % view().alignment != 0) {
            fail(TN_UNSUPPORTED, "buffer type '", view().name, "': memory isn't a multiple of ", view().alignment);
        }
        return std::make_unique<HostBuffer>(*this, memory, bytes, writable);
    }
};

}  // namespace tenon::plugin
#endif
