// What the host's functions work on when a plugin calls them: the plugin's name, the registry's services, and all that
// the plugin has registered. It is the `ctx` of both host tables, so it stays where it is until unload has returned; if
// unload never succeeds, it stays for good, since the plugin's threads may go on calling.
//
// No function here calls into a plugin, and none holds the mutex while somebody else's code runs (H01).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "registry/host_services.h"
#include "registry/live_count.h"
#include "tenon/abi.h"
#include "tenon/device.h"

namespace tenon {

struct AdapterRow {
    tn_adapter handle;
    AdapterInfo info;
    bool withdrawn = false;
};

/// A buffer type that needs no opened device.
struct BufferTypeRow {
    tn_buffer_type handle;
    tn_buffer_type_info info;  // its name is 0
    std::string name;
    bool withdrawn = false;
};

/// Where an opened device wants to be told of changes. The pointers are the device's own.
struct DeviceRow {
    tn_device handle;
    tn_adapter adapter;
    std::atomic<uint64_t> *generation;
    std::atomic<bool> *lost;
};

class PluginContext : public std::enable_shared_from_this<PluginContext> {
public:
    /// `devices`: what the manifest says adapters are called.
    PluginContext(std::string name, std::vector<std::string> devices, std::shared_ptr<HostServices> services);
    PluginContext(const PluginContext &) = delete;
    PluginContext &operator=(const PluginContext &) = delete;
    ~PluginContext();

    const std::string &name() const { return name_; }
    HostServices &services() const { return *services_; }
    const std::shared_ptr<LiveCount> &live() const { return live_; }
    /// What it holds of the services' memory.
    MemoryAccount &memory() { return memory_; }

    const tn_host *host() const { return &host_; }
    const tn_registrar *registrar() const { return &registrar_; }

    /// Adapters that aren't withdrawn, in the order in which they were added.
    std::vector<AdapterRow> adapters() const;
    std::vector<BufferTypeRow> buffer_types() const;

    /// Tells the device of changes from now on. If its adapter was withdrawn meanwhile, it is told at once.
    void device_opened(const DeviceRow &row);
    void device_closing(tn_device handle);

    /// From now on it stays where it is for good: the plugin's threads may go on calling the host. Allocates nothing.
    void stay() noexcept;

    /// Forgets all that was registered: load failed, or unload has succeeded.
    void drop_registrations();

    // The registrar's and the host's functions, as the ABI has them.
    tn_status adapter_add(tn_adapter adapter, const tn_adapter_info *info);
    tn_status adapter_withdraw(tn_adapter adapter);
    tn_status buffer_type_add(tn_buffer_type type, const tn_buffer_type_info *info);
    tn_status buffer_type_withdraw(tn_buffer_type type);
    tn_status op_add(const tn_op_info *info, uint32_t *out);
    tn_status op_withdraw(uint32_t id);
    void changed(uint32_t what, const void *object);

private:
    tn_status refuse(std::string_view function, std::string_view reason) const;
    Result<uint32_t> add_op(const tn_op_info &info);

    const std::string name_;
    const std::vector<std::string> devices_;
    const std::shared_ptr<HostServices> services_;
    const std::shared_ptr<LiveCount> live_;
    MemoryAccount memory_{0};
    tn_host host_;
    tn_registrar registrar_;

    mutable std::mutex mutex_;
    std::vector<AdapterRow> adapters_;
    std::vector<BufferTypeRow> types_;
    std::vector<DeviceRow> opened_;
    std::vector<uint32_t> ops_;

    std::shared_ptr<PluginContext> self_, next_staying_;  // of one that stays
};

/// The C tables over a context.
tn_host make_host_table(PluginContext *context);
tn_registrar make_registrar_table(PluginContext *context);

}  // namespace tenon
