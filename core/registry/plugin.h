// A loaded plugin: its library, the instance that load answered, and its tables made whole. All that is made from it
// (devices, buffers, streams ...) holds it and is counted, so that unload can refuse while something lives (H04).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/plugin_call.h"
#include "registry/library.h"
#include "registry/live_count.h"
#include "registry/manifest.h"
#include "registry/plugin_context.h"
#include "registry/plugin_folder.h"
#include "registry/tables.h"
#include "tenon/device.h"
#include "tenon/status.h"

namespace tenon {

using OptionList = std::vector<std::pair<std::string, std::string>>;

/// Any thread, but for load and unload of one plugin, which take turns by themselves.
class Plugin : public std::enable_shared_from_this<Plugin> {
public:
    /// Opens the checked library, queries it, negotiates and loads. Messages say why not, without the plugin's name or
    /// folder. On failure nothing that it registered is left.
    static Result<std::shared_ptr<Plugin>> load(const PluginFolder &folder, const Manifest &manifest,
                                                std::shared_ptr<HostServices> services);
    /// Unloads what is still loaded.
    ~Plugin();
    Plugin(const Plugin &) = delete;
    Plugin &operator=(const Plugin &) = delete;

    const std::string &name() const { return context_->name(); }
    /// The minor that both sides serve.
    uint32_t minor() const { return minor_; }
    /// Every function is there: a stub where the plugin has none. Only to be called while something of it is counted.
    const PluginTables &tables() const { return tables_; }
    LiveCount &live() const { return *context_->live(); }

    /// Calls a function of the tables with the plugin's name put before its text. Allocates nothing on success.
    template <class... P, class... A>
    Status call(std::string_view what, tn_status (*function)(P...), A &&...args) const {
        return call_plugin(name(), what, function, std::forward<A>(args)...);
    }
    /// What to answer instead of a call into a plugin that isn't loaded any more.
    Status unloaded() const;

    /// Adapters that are there now, with their memory.
    std::vector<AdapterInfo> adapters();
    /// Types that need no opened device.
    std::vector<BufferType> buffer_types();
    /// not_found: no such adapter. `adapter` as AdapterInfo::name has it, compared without case.
    Result<std::shared_ptr<Device>> open_device(std::string_view adapter, const OptionList &options);

    /// From now on no change is told to this device. Called by its destructor.
    void device_closing(tn_device device) { context_->device_closing(device); }

    /// busy: something lives; the message says how much. Everything goes on then. Otherwise nothing of the plugin can
    /// be called any more, and the library is closed where it may be.
    Status unload();

private:
    Plugin(std::shared_ptr<PluginContext> context, std::shared_ptr<Library> library);
    Status start(const Manifest &manifest);
    Status stop();

    std::shared_ptr<PluginContext> context_;
    std::shared_ptr<Library> library_;
    FileId file_;
    PluginTables tables_;
    tn_instance instance_ = nullptr;
    uint32_t minor_ = 0;
};

}  // namespace tenon
