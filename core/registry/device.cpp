// Opened devices and their buffer types: the calls of tn_device_api and tn_buffer_type_api.
#include "tenon/device.h"

#include <fmt/format.h>

#include "base/no_throw.h"
#include "base/text.h"
#include "registry/lists.h"
#include "registry/plugin.h"
#include "tenon/dtype.h"

namespace tenon {

std::string_view kind_name(DeviceKind kind) noexcept {
    switch (kind) {
        case DeviceKind::cpu: return "cpu";
        case DeviceKind::gpu: return "gpu";
        case DeviceKind::integrated: return "integrated";
        case DeviceKind::accelerator: return "accelerator";
    }
    return "unknown";
}

Device::Device(std::shared_ptr<Plugin> plugin, tn_device handle, AdapterInfo info)
    : plugin_(std::move(plugin)), handle_(handle), info_(std::move(info)) {}

Device::~Device() {
    if (!handle_) return;  // it was never opened
    plugin_->device_closing(handle_);
    plugin_->tables().device.close(handle_);
    plugin_->live().leave();
}

uint64_t Device::generation() const {
    return generation_.load(std::memory_order_acquire);
}

Status Device::note(Status status) const {
    if (status.code() == Code::device_lost && !lost_.exchange(true, std::memory_order_relaxed)) {
        generation_.fetch_add(1, std::memory_order_acq_rel);
    }
    return status;
}

Status Device::usable() const {
    return no_throw([&]() -> Status {
        if (!lost()) [[likely]]
            return {};
        return {Code::device_lost, fmt::format("{}: the device is lost; close it and open another", name())};
    });
}

Status Device::read_buffer_types() {
    const PluginTables &t = plugin_->tables();
    std::vector<tn_buffer_type> handles;
    TENON_TRY(read_list<tn_buffer_type>(handles, "buffer types", [&](uint64_t *count, tn_buffer_type *out) {
        return plugin_->call("device.buffer_types", t.device.buffer_types, handle_, count, out);
    }));
    if (handles.empty()) return Status::internal(fmt::format("{}: it lists no buffer type", name()));
    for (tn_buffer_type handle : handles) {
        if (!handle) return Status::internal(fmt::format("{}: it lists a null buffer type", name()));
        tn_buffer_type_info info{};
        info.struct_size = TN_SIZE_BUFFER_TYPE_INFO;
        TENON_TRY(note(plugin_->call("buffer_type.info", t.buffer_type.info, handle, &info)));
        TypeRow row{handle, info, info.name ? printable(info.name, 500) : std::string()};
        row.info.name = nullptr;
        if (row.name.empty()) return Status::internal(fmt::format("{}: a buffer type has no name", name()));
        if (info.alignment == 0 || (info.alignment & (info.alignment - 1))) {
            return Status::internal(fmt::format("{}: buffer type {} has alignment {}, which is no power of two", name(),
                                                row.name, info.alignment));
        }
        types_.push_back(std::move(row));
    }
    return {};
}

std::vector<BufferType> Device::buffer_types() {
    std::vector<BufferType> out;
    for (const TypeRow &row : types_) {
        tn_buffer_type_info info = row.info;
        info.name = row.name.c_str();
        out.emplace_back(plugin_, shared_from_this(), row.handle, info);
    }
    return out;
}

BufferType Device::default_buffer_type() {
    tn_buffer_type_info info = types_.front().info;
    info.name = types_.front().name.c_str();
    return BufferType(plugin_, shared_from_this(), types_.front().handle, info);
}

Status Device::set_option(const std::string &key, const std::string &value) {
    return no_throw([&]() -> Status {
        Status status = note(plugin_->call("device.option_set", plugin_->tables().device.option_set, handle_,
                                           key.c_str(), value.c_str()));
        if (status.ok()) generation_.fetch_add(1, std::memory_order_acq_rel);
        return std::move(status).in([&] { return fmt::format("{}: option {}={}", name(), key, value); });
    });
}

Result<std::string> Device::get_option(const std::string &key) const {
    return no_throw([&]() -> Result<std::string> {
        std::string text;
        Status status = read_text(text, [&](uint64_t *bytes, char *out) {
            return plugin_->call("device.option_get", plugin_->tables().device.option_get, handle_, key.c_str(), bytes,
                                 out);
        });
        if (!status.ok()) return note(std::move(status)).in(fmt::format("{}: option {}", name(), key));
        return text;
    });
}

Result<std::vector<uint32_t>> Device::supports(const tn_graph &graph) const {
    return no_throw([&]() -> Result<std::vector<uint32_t>> {
        std::vector<uint32_t> out(graph.node_count);
        TENON_TRY(note(
            plugin_->call("device.supports_op", plugin_->tables().device.supports_op, handle_, &graph, out.data())));
        return out;
    });
}

Result<std::string> Device::support_reason(const tn_graph &graph, uint64_t node) const {
    return no_throw([&]() -> Result<std::string> {
        std::string text;
        TENON_TRY(note(read_text(text, [&](uint64_t *bytes, char *out) {
            return plugin_->call("device.support_reason", plugin_->tables().device.support_reason, handle_, &graph,
                                 node, bytes, out);
        })));
        return printable(text);
    });
}

Result<bool> Device::supports(const BufferType &type) const {
    return no_throw([&]() -> Result<bool> {
        uint32_t answer = 0;
        const tn_buffer_type_info info = type.info();
        TENON_TRY(note(plugin_->call("device.supports_buffer_type", plugin_->tables().device.supports_buffer_type,
                                     handle_, &info, &answer)));
        return answer != 0;
    });
}

BufferType::BufferType(std::shared_ptr<Plugin> plugin, std::shared_ptr<Device> device, tn_buffer_type handle,
                       const tn_buffer_type_info &info)
    : plugin_(std::move(plugin)),
      device_(std::move(device)),
      handle_(handle),
      info_(info),
      name_(std::make_shared<const std::string>(info.name ? info.name : "")) {
    info_.struct_size = TN_SIZE_BUFFER_TYPE_INFO;
    info_.next = nullptr;
    info_.name = nullptr;
}

tn_buffer_type_info BufferType::info() const {
    tn_buffer_type_info info = info_;
    info.name = name_->c_str();
    return info;
}

Status BufferType::note(Status status) const {
    return device_ ? device_->note(std::move(status)) : status;
}

Result<std::shared_ptr<Buffer>> BufferType::adopt(LiveGuard &guard, std::shared_ptr<Buffer> buffer,
                                                  tn_buffer handle) const {
    if (!handle) return Status::internal(fmt::format("{}: answered ok without a buffer", name()));
    buffer->handle_ = handle;
    guard.keep();  // from here on the buffer counts itself
    const uint64_t bytes = buffer->bytes();
    tn_buffer_info info{};
    info.struct_size = TN_SIZE_BUFFER_INFO;
    TENON_TRY(note(plugin_->call("buffer.info", plugin_->tables().buffer.info, handle, &info)).in(name()));
    if (info.bytes < bytes || (is_host() && !info.base && bytes)) {
        return Status::internal(fmt::format("{}: a buffer of {} bytes was asked for, {} bytes at {} were given", name(),
                                            bytes, info.bytes, info.base));
    }
    if (is_host()) buffer->base_ = info.base;
    return buffer;
}

Result<std::shared_ptr<Buffer>> BufferType::alloc(uint64_t bytes, Usage usage) const {
    return no_throw([&]() -> Result<std::shared_ptr<Buffer>> {
        if (max_bytes() && bytes > max_bytes()) {
            return Status::out_of_memory(
                fmt::format("{}: {} bytes are more than one buffer can have here ({})", name(), bytes, max_bytes()));
        }
        if (device_) TENON_TRY(device_->usable());
        auto buffer = std::make_shared<Buffer>(*this, nullptr, nullptr, bytes);  // first: no handle may lack an owner
        LiveGuard guard(plugin_->live());
        if (!guard) return plugin_->unloaded();
        tn_buffer handle = nullptr;
        TENON_TRY(note(plugin_->call("buffer_type.alloc", plugin_->tables().buffer_type.alloc, handle_, bytes,
                                     uint32_t(usage), &handle))
                      .in([&] { return fmt::format("{}: {} bytes", name(), bytes); }));
        return adopt(guard, std::move(buffer), handle);
    });
}

Result<std::shared_ptr<Buffer>> BufferType::import_host(void *data, uint64_t bytes, bool writable) const {
    return no_throw([&]() -> Result<std::shared_ptr<Buffer>> {
        if (device_) TENON_TRY(device_->usable());
        auto buffer = std::make_shared<Buffer>(*this, nullptr, nullptr, bytes);
        LiveGuard guard(plugin_->live());
        if (!guard) return plugin_->unloaded();
        tn_buffer handle = nullptr;
        TENON_TRY(note(plugin_->call("buffer_type.import_host", plugin_->tables().buffer_type.import_host, handle_,
                                     data, bytes, writable ? 1u : 0u, &handle))
                      .in([&] { return fmt::format("{}: {} bytes of host memory", name(), bytes); }));
        return adopt(guard, std::move(buffer), handle);
    });
}

Result<uint64_t> BufferType::tensor_bytes(const tn_value &tensor) const {
    return no_throw([&]() -> Result<uint64_t> {
        const std::string_view tensor_name = tensor.name ? tensor.name : "without a name";
        LiveGuard guard(plugin_->live());
        if (!guard) return plugin_->unloaded();
        uint64_t bytes = 0;
        TENON_TRY(note(plugin_->call("buffer_type.tensor_bytes", plugin_->tables().buffer_type.tensor_bytes, handle_,
                                     &tensor, &bytes))
                      .in([&] { return fmt::format("{}, tensor {}", name(), tensor_name); }));
        const DTypeInfo *type = find_dtype(tensor.type);
        auto canonical = type && tensor.rank <= TN_MAX_RANK ? canonical_bytes(type->type, {tensor.shape, tensor.rank})
                                                            : std::nullopt;
        if (canonical && bytes < uint64_t(*canonical)) {
            return Status::internal(
                fmt::format("{}, tensor {}: the plugin counts {} bytes, fewer than its canonical {} (D23)", name(),
                            tensor_name, bytes, *canonical));
        }
        return bytes;
    });
}

}  // namespace tenon
