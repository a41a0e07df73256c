#include "stream.h"

#include "memory.h"

namespace mock {

MockStream::MockStream(MockDevice &device) : Stream(device), mock_(device), gate_(device), inner_(device) {}

void MockStream::set(Buffer &buffer, const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) {
    inner_.set(buffer, static_cast<MockBuffer &>(buffer).named(tensor), offset, src, bytes);
}

void MockStream::get(Buffer &buffer, const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) {
    inner_.get(buffer, static_cast<MockBuffer &>(buffer).named(tensor), offset, dst, bytes);
}

void MockStream::copy(Buffer &dst, const ValueView &dst_tensor, Buffer &src, const ValueView &src_tensor) {
    inner_.copy(dst, static_cast<MockBuffer &>(dst).named(dst_tensor), src,
                static_cast<MockBuffer &>(src).named(src_tensor));
}

void MockStream::hold_up() {
    if (mock_.faults.delay_us.load(std::memory_order_relaxed) != 0) inner_.set(gate_, ValueView{}, 0, nullptr, 0);
}

void MockEvent::record(Stream &stream) {
    mock_.faults.check(Call::kRecord);
    auto &on = static_cast<MockStream &>(stream);
    on.hold_up();
    inner_.record(on.inner());
}

}  // namespace mock
