// The plugin's root: query, load, unload.
#ifndef TENON_PLUGIN_ROOT_HPP
#define TENON_PLUGIN_ROOT_HPP

#include "tenon/plugin/tables.hpp"

namespace tenon::plugin::detail {

/// "00112233-4455-6677-8899-aabbccddeeff"; anything else doesn't compile.
consteval std::array<uint8_t, 16> parse_guid(std::string_view text) {
    std::array<uint8_t, 16> guid{};
    size_t digits = 0;
    for (char c : text) {
        if (c == '-') continue;
        const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c - 'A' + 10;
        if (value < 0 || value > 15 || digits == 32) throw "a guid has 32 hexadecimal digits";
        guid[digits / 2] = static_cast<uint8_t>(guid[digits / 2] * 16 + value);
        ++digits;
    }
    if (digits != 32) throw "a guid has 32 hexadecimal digits";
    return guid;
}

/// The host's functions of 1.0 are all there; without its sink nothing can be told.
inline bool has_sink(const tn_host *host) noexcept {
    return host != nullptr && TN_HAS(host, tn_host, error);
}

inline tn_status query(const tn_host *host, const tn_plugin &table, const tn_plugin **out) noexcept {
    if (!has_sink(host)) return TN_INVALID_ARGUMENT;
    return guard(HostRef(host), [&] {
        read_struct(host);
        *need(out, "out") = &table;
    });
}

inline void check_complete(const tn_host &h, const tn_registrar &r) {
    const bool host = h.error != nullptr && h.log != nullptr && h.alloc != nullptr && h.dealloc != nullptr &&
                      h.option != nullptr && h.cancelled != nullptr && h.changed != nullptr && h.extension != nullptr &&
                      h.trace_span != nullptr;
    const bool registrar = r.adapter_add != nullptr && r.adapter_withdraw != nullptr && r.buffer_type_add != nullptr &&
                           r.buffer_type_withdraw != nullptr && r.op_add != nullptr && r.op_withdraw != nullptr;
    if (!host || !registrar) fail(TN_INVALID_ARGUMENT, "the host's tables lack functions of 1.0");
}

/// The one word of state outside the instance, and only where the plugin declares that it can't be loaded twice (D09).
template <class InstanceClass>
struct SingleUse {
    static inline std::atomic<bool> taken{false};
};

template <class InstanceClass, uint64_t kFlags>
struct Root {
    static constexpr bool kSingle = (kFlags & TN_PLUGIN_SINGLE) != 0;

    static constexpr tn_plugin table(const PluginInfo &info, const char *vendor, const char *version,
                                     decltype(tn_plugin::load) load) {
        tn_plugin t{};
        t.struct_size = TN_SIZE_PLUGIN;
        t.abi = {TN_ABI_MINOR_MIN, TN_ABI_MINOR_MAX};
        t.name = info.name, t.vendor = vendor, t.version = version;
        for (size_t i = 0; i < info.guid.size(); ++i) t.guid[i] = info.guid[i];
        t.flags = kFlags;
        t.load = load, t.unload = unload, t.extension = extension;
        t.adapter = &kAdapterApi, t.device = &kDeviceApi, t.buffer_type = &kBufferTypeApi, t.buffer = &kBufferApi;
        t.stream = &kStreamApi, t.event = &kEventApi, t.plan = &kPlanApi;
        return t;
    }

    template <const PluginInfo &kInfo>
    static tn_status load(const tn_host *host, const tn_registrar *registrar, uint32_t, tn_instance *out) noexcept {
        if (!has_sink(host)) return TN_INVALID_ARGUMENT;
        return guard(HostRef(host), [&] {
            need(out, "out");
            const tn_host own_host = read_struct(host);
            const tn_registrar own_registrar = read_struct(registrar);
            check_complete(own_host, own_registrar);
            if constexpr (kSingle) {
                if (SingleUse<InstanceClass>::taken.exchange(true))
                    fail(TN_BUSY, "one instance at a time, and there is one");
            }
            try {
                std::unique_ptr<Instance> instance = std::make_unique<InstanceClass>();
                Border::attach(*instance, kInfo, own_host, own_registrar);
                start(*instance);
                *out = reinterpret_cast<tn_instance>(instance.release());
            } catch (...) {
                if constexpr (kSingle) SingleUse<InstanceClass>::taken.store(false);
                throw;
            }
        });
    }

private:
    static void start(Instance &instance) {
        try {
            instance.load(instance.registrar());
        } catch (...) {
            Border::clear(instance);
            throw;
        }
    }

    static tn_status unload(tn_instance handle) noexcept {
        return call(handle, [](Instance &instance) {
            if (Border::busy(instance)) fail(TN_BUSY, "objects of the plugin are alive");
            Border::clear(instance);
            delete &instance;
            if constexpr (kSingle) SingleUse<InstanceClass>::taken.store(false);
        });
    }

    static tn_status extension(tn_instance handle, const char *name, const void **out) noexcept {
        return call(handle, [&](Instance &instance) {
            need(out, "out");
            const void *found = instance.extension(need(name, "name"));
            if (found == nullptr) fail(TN_NOT_FOUND, "no extension '", name, "'");
            *out = found;
        });
    }
};

}  // namespace tenon::plugin::detail
#endif
