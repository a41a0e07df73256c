// Memory: the calls of tn_buffer_api.
#include <fmt/format.h>

#include "base/no_throw.h"
#include "registry/plugin.h"
#include "tenon/device.h"

namespace tenon {
namespace {

Status at(const BufferType &type, const tn_value &tensor, Status status) {
    return std::move(status).in(
        [&] { return fmt::format("{}, tensor {}", type.name(), tensor.name ? tensor.name : "without a name"); });
}

}  // namespace

Buffer::Buffer(BufferType type, tn_buffer handle, void *base, uint64_t bytes)
    : type_(std::move(type)), handle_(handle), base_(base), bytes_(bytes) {}

Buffer::~Buffer() {
    if (!handle_) return;  // it was never allocated
    type_.plugin()->tables().buffer.destroy(handle_);
    type_.plugin()->live().leave();
}

Result<uint64_t> Buffer::init_tensor(const tn_value &tensor) {
    return no_throw([&]() -> Result<uint64_t> {
        uint64_t cookie = 0;
        const Plugin &p = *type_.plugin();
        Status status =
            type_.note(p.call("buffer.init_tensor", p.tables().buffer.init_tensor, handle_, &tensor, &cookie));
        if (status.code() == Code::unimplemented) return uint64_t(0);
        if (!status.ok()) return at(type_, tensor, std::move(status));
        return cookie;
    });
}

Status Buffer::set(const tn_value &tensor, uint64_t offset, const void *src, uint64_t bytes) {
    return no_throw([&]() -> Status {
        const Plugin &p = *type_.plugin();
        return at(type_, tensor,
                  type_.note(p.call("buffer.set", p.tables().buffer.set, handle_, &tensor, offset, src, bytes)));
    });
}

Status Buffer::get(const tn_value &tensor, uint64_t offset, void *dst, uint64_t bytes) {
    return no_throw([&]() -> Status {
        const Plugin &p = *type_.plugin();
        return at(type_, tensor,
                  type_.note(p.call("buffer.get", p.tables().buffer.get, handle_, &tensor, offset, dst, bytes)));
    });
}

Status Buffer::fill(const tn_value &tensor, uint64_t offset, uint64_t bytes, uint8_t byte) {
    return no_throw([&]() -> Status {
        const Plugin &p = *type_.plugin();
        return at(type_, tensor,
                  type_.note(p.call("buffer.fill", p.tables().buffer.fill, handle_, &tensor, offset, bytes, byte)));
    });
}

Status Buffer::clear(uint8_t byte) {
    return no_throw([&]() -> Status {
        const Plugin &p = *type_.plugin();
        return type_.note(p.call("buffer.clear", p.tables().buffer.clear, handle_, byte)).in(type_.name());
    });
}

Status Buffer::set_usage(Usage usage) {
    return no_throw([&]() -> Status {
        const Plugin &p = *type_.plugin();
        Status status = type_.note(p.call("buffer.set_usage", p.tables().buffer.set_usage, handle_, uint32_t(usage)));
        if (status.code() == Code::unimplemented) return {};  // a hint that nobody takes
        return std::move(status).in(type_.name());
    });
}

}  // namespace tenon
