#include "memory.h"

#include <cstdlib>

namespace mock {

MockBufferType::MockBufferType(MockDevice &device, std::string name, uint64_t alignment, uint64_t max_bytes)
    : BufferType(device, BufferTypeView{.name = std::move(name),
                                        .owner = {},
                                        .memory = TN_MEMORY_DEVICE,
                                        .flags = 0,
                                        .alignment = alignment,
                                        .max_bytes = max_bytes}) {}

std::unique_ptr<Buffer> MockBufferType::alloc(uint64_t bytes, uint32_t) {
    static_cast<MockDevice &>(*device()).faults.check(Call::kAlloc);
    return std::make_unique<MockBuffer>(*this, bytes);
}

MockBuffer::MockBuffer(BufferType &type, uint64_t bytes) : Buffer(type, bytes) {
    if (mock().hazards()) shadow_ = std::make_unique<Shadow>(bytes);
    MockAdapter &adapter = mock().mock_adapter();
    uint64_t used = adapter.used.load();
    do {
        if (bytes > adapter.total - std::min(used, adapter.total.load())) {
            fail(TN_OUT_OF_MEMORY, adapter.info().name, ": ", bytes, " bytes asked for, ", adapter.memory().free,
                 " free");
        }
    } while (!adapter.used.compare_exchange_weak(used, used + bytes));
    const uint64_t alignment = type.view().alignment;
    const uint64_t rounded = std::max<uint64_t>((bytes + alignment - 1) / alignment * alignment, alignment);
    memory_ = static_cast<std::byte *>(std::aligned_alloc(alignment, rounded));
    if (memory_ == nullptr) {
        adapter.used -= bytes;
        fail(TN_OUT_OF_MEMORY, adapter.info().name, ": no memory for ", bytes, " bytes");
    }
    std::memset(memory_, 0xa5, bytes);  // contents are undefined: whoever reads them notices
}

MockBuffer::~MockBuffer() {
    std::free(memory_);
    mock().mock_adapter().used -= bytes();
}

// ---- Names ----

namespace {
/// Marks a cookie that holds a name's number; the mock's own cookies are all 0.
constexpr uint64_t kNamed = uint64_t{1} << 32;
}  // namespace

ValueView MockBuffer::named(const ValueView &tensor) const {
    ValueView own = tensor;
    if (shadow_ != nullptr) own.cookie = kNamed | mock().names().id(tensor.name);
    return own;
}

Tag MockBuffer::tag_of(const ValueView &tensor) const {
    if ((tensor.cookie & kNamed) != 0) return {static_cast<uint32_t>(tensor.cookie), 0};
    return {mock().names().id(tensor.name), 0};
}

void MockBuffer::check_read(const char *call, const ValueView &tensor, uint64_t offset, uint64_t bytes) const {
    if (shadow_ == nullptr) return;
    const Expected expected{.tag = tag_of(tensor), .lasts = true, .outside = true};
    const auto hazard = shadow_->find(tensor, tensor.offset, offset, bytes, expected);
    if (hazard)
        report(mock().names(), *hazard, expected, call, mock().names().text(expected.tag.name), type().view().name);
}

// ---- Bytes ----

void MockBuffer::set(const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) {
    mock().faults.pause();
    mock().faults.check(Call::kSet);
    bytes::set(memory_, tensor, offset, src, bytes);
    if (shadow_ != nullptr) shadow_->write(tensor, tensor.offset, offset, bytes, tag_of(tensor));
}

void MockBuffer::get(const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) {
    mock().faults.pause();
    mock().faults.check(Call::kGet);
    check_read("get", tensor, offset, bytes);
    bytes::get(memory_, tensor, offset, dst, bytes);
}

void MockBuffer::fill(const ValueView &tensor, uint64_t offset, uint64_t bytes, uint8_t byte) {
    mock().faults.check(Call::kSet);
    bytes::fill(memory_, tensor, offset, bytes, byte);
    if (shadow_ != nullptr) shadow_->write(tensor, tensor.offset, offset, bytes, tag_of(tensor));
}

void MockBuffer::clear(uint8_t byte) {
    std::memset(memory_, byte, bytes());
    if (shadow_ != nullptr) shadow_->write(0, bytes(), {Names::kCleared, 0});
}

bool MockBuffer::can_copy_from(const ValueView &, const Buffer &src, const ValueView &) const {
    return dynamic_cast<const MockBuffer *>(&src) != nullptr &&
           (src.type().device() == type().device() || mock().peer());
}

void MockBuffer::copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor) {
    mock().faults.pause();
    mock().faults.check(Call::kCopy);
    const auto &from = static_cast<const MockBuffer &>(src);
    from.check_read("copy", src_tensor, 0, src_tensor.bytes());
    Tag tag = shadow_ != nullptr ? tag_of(dst) : Tag{};
    // what a run made stays that run's, on whatever device
    if (from.shadow() != nullptr && !src_tensor.is_empty()) tag.token = from.shadow()->at(src_tensor.offset).token;
    bytes::copy(memory_, dst, from.memory_, src_tensor);
    if (shadow_ != nullptr) shadow_->write(dst, dst.offset, tag);
}

uint64_t MockBuffer::init_tensor(const ValueView &) {
    mock().faults.check(Call::kInit);
    return 0;
}

}  // namespace mock
