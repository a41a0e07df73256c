// The functions of objects.hpp that need more than one of its classes.
#ifndef TENON_PLUGIN_OBJECTS_IMPL_HPP
#define TENON_PLUGIN_OBJECTS_IMPL_HPP

#include "tenon/plugin/vendor_op.hpp"

namespace tenon::plugin {

inline Instance::Instance() = default;
inline Instance::~Instance() = default;

inline Registrar::Registrar(const tn_registrar &table) : t_(table) {}
inline Registrar::~Registrar() = default;

inline void Device::set_option(std::string_view key, std::string_view) {
    fail(TN_NOT_FOUND, "no option '", key, "'");
}
inline std::optional<std::string> Device::option(std::string_view) const {
    return std::nullopt;
}

inline Device::Device(Adapter &adapter) : adapter_(adapter) {
    const std::lock_guard lock(adapter.mutex_);
    adapter.devices_.push_back(this);
}

inline Device::~Device() {
    const std::lock_guard lock(adapter_.mutex_);
    std::erase(adapter_.devices_, this);
}

inline void Device::lose(std::string_view why) noexcept {
    const std::lock_guard lock(mutex_);
    if (lost()) return;
    std::snprintf(why_lost_.text, sizeof why_lost_.text, "%.*s", static_cast<int>(std::min<size_t>(why.size(), 200)),
                  why.data());
    why_lost_.status = TN_DEVICE_LOST;
    lost_.store(true, std::memory_order_release);
    for (Waitable *waitable : waitables_) waitable->wake();
}

inline void Device::check_alive() const {
    if (!lost()) return;
    detail::Failure why;
    {
        const std::lock_guard lock(mutex_);
        why = why_lost_;
    }
    throw Error(why.status, why.text);
}

inline void Waitable::enlist() {
    const std::lock_guard lock(device_.mutex_);
    device_.waitables_.push_back(this);
}

inline void Waitable::forget() noexcept {
    const std::lock_guard lock(device_.mutex_);
    std::erase(device_.waitables_, this);
}

inline void Adapter::lose_devices() {
    const std::lock_guard lock(mutex_);
    withdrawn_.store(true, std::memory_order_release);
    for (Device *device : devices_) device->lose("the adapter was withdrawn");
}

inline std::unique_ptr<Buffer> BufferType::import_host(void *, uint64_t, bool) {
    fail(TN_UNSUPPORTED, "buffer type '", view_.name, "' can't import host memory");
}

inline void Buffer::copy_from(const ValueView &, const Buffer &, const ValueView &) {
    fail(TN_INTERNAL, "the buffer can't copy, although it said so");
}

template <class T>
T &Registrar::keep(std::vector<std::unique_ptr<T>> &list, std::unique_ptr<T> object) {
    T &kept = *need(object.get(), "what is registered");
    const std::lock_guard lock(mutex_);
    list.push_back(std::move(object));
    return kept;
}

template <class T>
void Registrar::drop(std::vector<std::unique_ptr<T>> &list, const T &object) {
    const std::lock_guard lock(mutex_);
    std::erase_if(list, [&](const auto &one) { return one.get() == &object; });
}

namespace detail {
inline tn_buffer_type_info describe(const BufferType &type) {
    const BufferTypeView &view = type.view();
    auto own = make_struct<tn_buffer_type_info>();
    own.name = view.name.c_str();
    std::copy(view.owner.begin(), view.owner.end(), own.owner);
    own.memory = view.memory, own.flags = view.flags, own.alignment = view.alignment, own.max_bytes = view.max_bytes;
    return own;
}
}  // namespace detail

inline Adapter &Registrar::add(std::unique_ptr<Adapter> adapter) {
    Adapter &kept = keep(adapters_, std::move(adapter));
    const AdapterInfo &from = kept.info();
    auto info = make_struct<tn_adapter_info>();
    info.name = from.name.c_str(), info.description = from.description.c_str(), info.bus_id = from.bus_id.c_str();
    info.kind = from.kind, info.capabilities = from.capabilities;
    const tn_status status = t_.adapter_add(t_.ctx, reinterpret_cast<tn_adapter>(&kept), &info);
    if (status == TN_OK) return kept;
    const std::string name = from.name;
    drop(adapters_, kept);
    fail(detail::listed(status), "the host refused the adapter '", name, "'");
}

inline void Registrar::withdraw(Adapter &adapter) {
    adapter.lose_devices();
    const tn_status status = t_.adapter_withdraw(t_.ctx, reinterpret_cast<tn_adapter>(&adapter));
    if (status != TN_OK)
        fail(detail::listed(status), "the host can't withdraw the adapter '", adapter.info().name, "'");
}

inline BufferType &Registrar::add(std::unique_ptr<BufferType> type) {
    BufferType &kept = keep(types_, std::move(type));
    const tn_buffer_type_info info = detail::describe(kept);
    const tn_status status = t_.buffer_type_add(t_.ctx, reinterpret_cast<tn_buffer_type>(&kept), &info);
    if (status == TN_OK) return kept;
    const std::string name = kept.view().name;
    drop(types_, kept);
    fail(detail::listed(status), "the host refused the buffer type '", name, "'");
}

inline void Registrar::withdraw(BufferType &type) {
    const tn_status status = t_.buffer_type_withdraw(t_.ctx, reinterpret_cast<tn_buffer_type>(&type));
    if (status != TN_OK)
        fail(detail::listed(status), "the host can't withdraw the buffer type '", type.view().name, "'");
}

inline VendorOp &Registrar::add(std::unique_ptr<VendorOp> op) {
    VendorOp &kept = keep(ops_, std::move(op));
    const tn_op_info info = kept.info();
    uint32_t id = 0;
    const tn_status status = t_.op_add(t_.ctx, &info, &id);
    if (status == TN_OK) {
        kept.id_.store(id, std::memory_order_release);
        return kept;
    }
    const std::string name = kept.contract().name;
    drop(ops_, kept);
    fail(detail::listed(status), "the host refused the op '", name, "'");
}

inline void Registrar::clear() {
    ops_.clear();
    adapters_.clear();
    types_.clear();
}

}  // namespace tenon::plugin
#endif
