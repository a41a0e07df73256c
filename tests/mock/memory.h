// Memory of the mock device: out of the host's sight, filled with rubbish when new, and with hazards=1 shadowed by tags.
#ifndef TENON_TESTS_MOCK_MEMORY_H
#define TENON_TESTS_MOCK_MEMORY_H

#include "device.h"

namespace mock {

class MockBufferType : public BufferType {
public:
    /// alignment: a power of two. max_bytes of one buffer; 0: no limit.
    MockBufferType(MockDevice &device, std::string name, uint64_t alignment, uint64_t max_bytes);
    std::unique_ptr<Buffer> alloc(uint64_t bytes, uint32_t usage) override;
};

class MockBuffer : public Buffer {
public:
    MockBuffer(BufferType &type, uint64_t bytes);
    ~MockBuffer() override;
    void *base() const noexcept override { return nullptr; }
    void *device_address() const noexcept override { return memory_; }
    void set(const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) override;
    void get(const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) override;
    void fill(const ValueView &tensor, uint64_t offset, uint64_t bytes, uint8_t byte) override;
    void clear(uint8_t byte) override;
    bool can_copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor) const override;
    void copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor) override;
    uint64_t init_tensor(const ValueView &tensor) override;

    Shadow *shadow() const { return shadow_.get(); }  // null without hazards=1
    /// A tensor whose name outlives the call: as a number, where queued work finds it.
    ValueView named(const ValueView &tensor) const;

private:
    MockDevice &mock() const { return static_cast<MockDevice &>(*type().device()); }
    Tag tag_of(const ValueView &tensor) const;
    void check_read(const char *call, const ValueView &tensor, uint64_t offset, uint64_t bytes) const;

    std::byte *memory_ = nullptr;
    std::unique_ptr<Shadow> shadow_;
};

}  // namespace mock
#endif
