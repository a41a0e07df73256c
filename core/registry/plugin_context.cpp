// What a plugin registers, and who is told when it changes.
#include "registry/plugin_context.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/guarded.h"
#include "base/text.h"
#include "registry/manifest.h"

namespace tenon {
namespace {

PluginContext &self(void *ctx) {
    return *static_cast<PluginContext *>(ctx);
}

AdapterInfo read_adapter(const tn_adapter_info &from, const std::string &plugin) {
    auto text = [](const char *s) { return s ? printable(s, 500) : std::string(); };
    AdapterInfo info;
    info.name = text(from.name);
    info.description = text(from.description);
    info.bus_id = text(from.bus_id);
    info.plugin = plugin;
    info.kind = from.kind <= TN_KIND_ACCELERATOR ? DeviceKind(from.kind) : DeviceKind::accelerator;
    info.software = from.capabilities & TN_CAP_SOFTWARE;
    info.asynchronous = from.capabilities & TN_CAP_ASYNC;
    return info;
}

// "cpu" and "cpu:0" name one device.
bool same_name(const DeviceName &a, const DeviceName &b) {
    return a.base == b.base && a.index.value_or(0) == b.index.value_or(0);
}

void bump(const DeviceRow &row) {
    row.generation->fetch_add(1, std::memory_order_acq_rel);
}

void lose(const DeviceRow &row) {
    row.lost->store(true, std::memory_order_relaxed);
    bump(row);
}

}  // namespace

PluginContext::PluginContext(std::string name, std::vector<std::string> devices, std::shared_ptr<HostServices> services)
    : name_(std::move(name)),
      devices_(std::move(devices)),
      services_(std::move(services)),
      live_(std::make_shared<LiveCount>()),
      host_(make_host_table(this)),
      registrar_(make_registrar_table(this)) {}

PluginContext::~PluginContext() {
    drop_registrations();
}

tn_status PluginContext::refuse(std::string_view function, std::string_view reason) const {
    services_->logger.log(LogLevel::warning, "{}: {} was refused: {}", name_, function, reason);
    return TN_INVALID_ARGUMENT;
}

std::vector<AdapterRow> PluginContext::adapters() const {
    std::lock_guard lock(mutex_);
    std::vector<AdapterRow> out;
    std::ranges::copy_if(adapters_, std::back_inserter(out), [](const AdapterRow &row) { return !row.withdrawn; });
    return out;
}

std::vector<BufferTypeRow> PluginContext::buffer_types() const {
    std::lock_guard lock(mutex_);
    std::vector<BufferTypeRow> out;
    std::ranges::copy_if(types_, std::back_inserter(out), [](const BufferTypeRow &row) { return !row.withdrawn; });
    return out;
}

void PluginContext::device_opened(const DeviceRow &row) {
    std::lock_guard lock(mutex_);
    opened_.push_back(row);
    for (const AdapterRow &adapter : adapters_)
        if (adapter.handle == row.adapter && adapter.withdrawn) lose(row);
}

void PluginContext::device_closing(tn_device handle) {
    std::lock_guard lock(mutex_);
    std::erase_if(opened_, [&](const DeviceRow &row) { return row.handle == handle; });
}

void PluginContext::stay() noexcept {
    // Never destroyed, and known to leak checkers.
    static std::mutex &mutex = *new std::mutex;
    static auto &first = *new std::shared_ptr<PluginContext>;
    std::lock_guard lock(mutex);
    if (self_) return;
    self_ = shared_from_this();
    next_staying_ = std::exchange(first, self_);
}

void PluginContext::drop_registrations() {
    std::vector<uint32_t> ops;
    {
        std::lock_guard lock(mutex_);
        adapters_.clear();
        types_.clear();
        ops.swap(ops_);
    }
    for (uint32_t id : ops) {
        // Registered by this plugin, so it is there.
        (void)services_->ops.withdraw_vendor(id, live_.get());
    }
}

tn_status PluginContext::adapter_add(tn_adapter adapter, const tn_adapter_info *info) {
    return guarded([&] {
        if (!adapter || !info || info->struct_size < TN_V1_ADAPTER_INFO)
            return refuse("adapter_add", "null or too short");
        tn_adapter_info own;
        tn_read(&own, TN_SIZE_ADAPTER_INFO, info);
        AdapterRow row{adapter, read_adapter(own, name_)};
        const auto name = parse_device_name(row.info.name);
        if (!name || !covers(devices_, *name)) {
            return refuse("adapter_add", fmt::format("the manifest names no device '{}'", row.info.name));
        }
        std::lock_guard lock(mutex_);
        for (const AdapterRow &other : adapters_)
            if (!other.withdrawn &&
                (other.handle == adapter || same_name(*parse_device_name(other.info.name), *name))) {
                return tn_status(TN_BUSY);
            }
        adapters_.push_back(std::move(row));
        return tn_status(TN_OK);
    });
}

tn_status PluginContext::adapter_withdraw(tn_adapter adapter) {
    std::lock_guard lock(mutex_);
    for (AdapterRow &row : adapters_) {
        if (row.handle != adapter || row.withdrawn) continue;
        row.withdrawn = true;
        for (const DeviceRow &device : opened_)
            if (device.adapter == adapter) lose(device);
        return TN_OK;
    }
    return TN_NOT_FOUND;
}

tn_status PluginContext::buffer_type_add(tn_buffer_type type, const tn_buffer_type_info *info) {
    return guarded([&] {
        if (!type || !info || info->struct_size < TN_V1_BUFFER_TYPE_INFO)
            return refuse("buffer_type_add", "null or too short");
        BufferTypeRow row{type, {}, {}};
        tn_read(&row.info, TN_SIZE_BUFFER_TYPE_INFO, info);
        if (!row.info.name) return refuse("buffer_type_add", "it has no name");
        row.name = printable(row.info.name, 500);
        row.info.name = nullptr;
        std::lock_guard lock(mutex_);
        for (const BufferTypeRow &other : types_)
            if (!other.withdrawn && other.handle == type) return tn_status(TN_BUSY);
        types_.push_back(std::move(row));
        return tn_status(TN_OK);
    });
}

tn_status PluginContext::buffer_type_withdraw(tn_buffer_type type) {
    std::lock_guard lock(mutex_);
    for (BufferTypeRow &row : types_) {
        if (row.handle != type || row.withdrawn) continue;
        row.withdrawn = true;
        for (const DeviceRow &device : opened_) bump(device);
        return TN_OK;
    }
    return TN_NOT_FOUND;
}

Result<uint32_t> PluginContext::add_op(const tn_op_info &info) {
    std::lock_guard lock(mutex_);
    ops_.reserve(ops_.size() + 1);  // first: an op that the set has must be in this list too
    Result<uint32_t> id = services_->ops.add_vendor(info, live_);
    if (id.ok() && std::ranges::find(ops_, *id) == ops_.end()) ops_.push_back(*id);
    return id;
}

tn_status PluginContext::op_add(const tn_op_info *info, uint32_t *out) {
    return guarded([&] {
        if (!info || !out) return refuse("op_add", "null");
        const Result<uint32_t> id = add_op(*info);
        if (!id.ok()) {
            refuse("op_add", id.status().message());
            return tn_status(id.status().code());
        }
        *out = *id;
        return tn_status(TN_OK);
    });
}

tn_status PluginContext::op_withdraw(uint32_t id) {
    return guarded([&] {
        {
            std::lock_guard lock(mutex_);
            if (std::erase(ops_, id) == 0) return tn_status(TN_NOT_FOUND);
            for (const DeviceRow &device : opened_) bump(device);
        }
        return tn_status(services_->ops.withdraw_vendor(id, live_.get()).code());
    });
}

void PluginContext::changed(uint32_t what, const void *object) {
    std::lock_guard lock(mutex_);
    for (const DeviceRow &device : opened_) {
        // A buffer type, or something that this host doesn't know, may matter to each of the plugin's devices.
        bool other = (what == TN_CHANGED_DEVICE && device.handle != object) ||
                     (what == TN_CHANGED_ADAPTER && device.adapter != object);
        if (!other) bump(device);
    }
}

tn_registrar make_registrar_table(PluginContext *context) {
    tn_registrar table{};
    table.struct_size = TN_SIZE_REGISTRAR;
    table.ctx = context;
    table.adapter_add = [](void *ctx, tn_adapter a, const tn_adapter_info *info) {
        return self(ctx).adapter_add(a, info);
    };
    table.adapter_withdraw = [](void *ctx, tn_adapter a) { return self(ctx).adapter_withdraw(a); };
    table.buffer_type_add = [](void *ctx, tn_buffer_type t, const tn_buffer_type_info *info) {
        return self(ctx).buffer_type_add(t, info);
    };
    table.buffer_type_withdraw = [](void *ctx, tn_buffer_type t) { return self(ctx).buffer_type_withdraw(t); };
    table.op_add = [](void *ctx, const tn_op_info *info, uint32_t *out) { return self(ctx).op_add(info, out); };
    table.op_withdraw = [](void *ctx, uint32_t id) { return self(ctx).op_withdraw(id); };
    return table;
}

}  // namespace tenon
