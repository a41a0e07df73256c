// Work in order and points in it: the calls of tn_stream_api and tn_event_api. No handle reaches a plugin that didn't
// make it (H02).
#include <fmt/format.h>

#include "base/no_throw.h"
#include "registry/plugin.h"
#include "tenon/device.h"

namespace tenon {
namespace {

const PluginTables &tables(const Device &device) {
    return device.plugin()->tables();
}

Status own(const Device &device, const Buffer &buffer) {
    if (buffer.type().plugin() == device.plugin()) [[likely]]
        return {};
    return Status::unsupported(
        fmt::format("{}: a buffer of {} is another plugin's", device.name(), buffer.type().name()));
}

Status own(const Device &device, const Stream &stream) {
    if (stream.device().get() == &device) [[likely]]
        return {};
    return Status::invalid_argument(fmt::format("{}: the stream is of {}", device.name(), stream.device()->name()));
}

Status of_tensor(const tn_value &tensor, Status status) {
    return std::move(status).in([&] { return fmt::format("tensor {}", tensor.name ? tensor.name : "without a name"); });
}

}  // namespace

Stream::Stream(std::shared_ptr<Device> device, tn_stream handle) : device_(std::move(device)), handle_(handle) {}

Result<std::unique_ptr<Stream>> Stream::create(std::shared_ptr<Device> device) {
    return no_throw([&]() -> Result<std::unique_ptr<Stream>> {
        TENON_TRY(device->usable());
        std::unique_ptr<Stream> stream(new Stream(device, nullptr));  // first: no handle may lack an owner
        LiveGuard guard(device->plugin()->live());
        if (!guard) return device->plugin()->unloaded();
        tn_stream handle = nullptr;
        TENON_TRY(device->note(
            device->plugin()->call("stream.create", tables(*device).stream.create, device->handle(), &handle)));
        if (!handle)
            return Status::internal(fmt::format("{}: stream.create answered ok without a stream", device->name()));
        stream->handle_ = handle;
        guard.keep();
        return stream;
    });
}

Stream::~Stream() {
    if (!handle_) return;  // it was never created
    tables(*device_).stream.destroy(handle_);
    device_->plugin()->live().leave();
}

Status Stream::set(Buffer &buffer, const tn_value &tensor, uint64_t offset, const void *src, uint64_t bytes) {
    return no_throw([&]() -> Status {
        TENON_TRY(own(*device_, buffer));
        const auto &t = tables(*device_).stream;
        return of_tensor(tensor, device_->note(device_->plugin()->call("stream.set", t.set, handle_, buffer.handle(),
                                                                       &tensor, offset, src, bytes)));
    });
}

Status Stream::get(Buffer &buffer, const tn_value &tensor, uint64_t offset, void *dst, uint64_t bytes) {
    return no_throw([&]() -> Status {
        TENON_TRY(own(*device_, buffer));
        const auto &t = tables(*device_).stream;
        return of_tensor(tensor, device_->note(device_->plugin()->call("stream.get", t.get, handle_, buffer.handle(),
                                                                       &tensor, offset, dst, bytes)));
    });
}

Status Stream::copy(Buffer &dst, const tn_value &dst_tensor, Buffer &src, const tn_value &src_tensor) {
    return no_throw([&]() -> Status {
        TENON_TRY(own(*device_, dst));
        TENON_TRY(own(*device_, src));
        const auto &t = tables(*device_).stream;
        return of_tensor(src_tensor, device_->note(device_->plugin()->call("stream.copy", t.copy, handle_, dst.handle(),
                                                                           &dst_tensor, src.handle(), &src_tensor)));
    });
}

Status Stream::synchronize(uint64_t timeout_ns) {
    return no_throw([&]() -> Status {
        return device_->note(
            device_->plugin()->call("stream.synchronize", tables(*device_).stream.synchronize, handle_, timeout_ns));
    });
}

Event::Event(std::shared_ptr<Device> device, tn_event handle) : device_(std::move(device)), handle_(handle) {}

Result<std::unique_ptr<Event>> Event::create(std::shared_ptr<Device> device) {
    return no_throw([&]() -> Result<std::unique_ptr<Event>> {
        TENON_TRY(device->usable());
        std::unique_ptr<Event> event(new Event(device, nullptr));  // first: no handle may lack an owner
        LiveGuard guard(device->plugin()->live());
        if (!guard) return device->plugin()->unloaded();
        tn_event handle = nullptr;
        TENON_TRY(device->note(
            device->plugin()->call("event.create", tables(*device).event.create, device->handle(), &handle)));
        if (!handle)
            return Status::internal(fmt::format("{}: event.create answered ok without an event", device->name()));
        event->handle_ = handle;
        guard.keep();
        return event;
    });
}

Event::~Event() {
    if (!handle_) return;  // it was never created
    tables(*device_).event.destroy(handle_);
    device_->plugin()->live().leave();
}

Status Event::record(Stream &stream) {
    return no_throw([&]() -> Status {
        TENON_TRY(own(*device_, stream));
        return device_->note(
            device_->plugin()->call("event.record", tables(*device_).event.record, handle_, stream.handle()));
    });
}

Status Event::wait(Stream &stream) {
    return no_throw([&]() -> Status {
        TENON_TRY(own(*device_, stream));
        return device_->note(
            device_->plugin()->call("event.wait", tables(*device_).event.wait, handle_, stream.handle()));
    });
}

Status Event::synchronize(uint64_t timeout_ns) {
    return no_throw([&]() -> Status {
        return device_->note(
            device_->plugin()->call("event.synchronize", tables(*device_).event.synchronize, handle_, timeout_ns));
    });
}

}  // namespace tenon
