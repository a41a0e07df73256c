// The ready-made stream and event, and around them what they don't offer: an event's record can be held up and can fail,
// and queued work keeps its tensors' names for the hazard checker.
#ifndef TENON_TESTS_MOCK_STREAM_H
#define TENON_TESTS_MOCK_STREAM_H

#include "device.h"

namespace mock {

/// Work for the stream's thread that only takes time.
class Gate : public Buffer {
public:
    explicit Gate(MockDevice &device) : Buffer(device.default_buffer_type(), 0), faults_(device.faults) {}
    void *base() const noexcept override { return nullptr; }
    void set(const ValueView &, uint64_t, const void *, uint64_t) override { faults_.pause(); }
    void get(const ValueView &, uint64_t, void *, uint64_t) override {}
    void fill(const ValueView &, uint64_t, uint64_t, uint8_t) override {}
    void clear(uint8_t) override {}

private:
    Faults &faults_;
};

class MockStream final : public Stream {
public:
    explicit MockStream(MockDevice &device);
    void set(Buffer &buffer, const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) override;
    void get(Buffer &buffer, const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) override;
    void copy(Buffer &dst, const ValueView &dst_tensor, Buffer &src, const ValueView &src_tensor) override;
    void run(Plan &plan, const BoundSet &set, uint64_t cancel_token) override { inner_.run(plan, set, cancel_token); }
    void synchronize(uint64_t timeout_ns) override { inner_.synchronize(timeout_ns); }

    ThreadStream &inner() { return inner_; }
    /// A random delay, queued.
    void hold_up();

private:
    void wake() noexcept override {}  // nobody waits here: the inner one is woken

    MockDevice &mock_;
    Gate gate_;
    ThreadStream inner_;  // last: its thread ends before the gate does
};

class MockEvent final : public Event {
public:
    explicit MockEvent(MockDevice &device) : Event(device), mock_(device), inner_(device) {}
    void record(Stream &stream) override;
    void wait(Stream &stream) override { inner_.wait(static_cast<MockStream &>(stream).inner()); }
    void synchronize(uint64_t timeout_ns) override { inner_.synchronize(timeout_ns); }

private:
    void wake() noexcept override {}

    MockDevice &mock_;
    RoundEvent inner_;
};

}  // namespace mock
#endif
