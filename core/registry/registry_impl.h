// A registry's candidates, and the loading of each at most once at a time.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "registry/device_list.h"
#include "registry/manifest.h"
#include "registry/plugin.h"
#include "registry/plugin_folder.h"
#include "registry/search.h"
#include "tenon/registry.h"

namespace tenon {

struct Candidate {
    PluginOutcome outcome;  // guarded by Impl::mutex once the registry is made
    Manifest manifest;      // constant then, like folder
    std::optional<PluginFolder> folder;
    std::shared_ptr<Plugin> plugin;
    bool busy = false;  // a thread loads or unloads it
};

struct Registry::Impl {
    Impl(std::shared_ptr<HostServices> services_of) : services(std::move(services_of)) {}

    /// Reads the folders' manifests; see Registry::create.
    void examine(const std::vector<SearchDirectory> &directories);
    /// The candidate's plugin, loaded if it isn't; null where it is refused or shadowed. out_of_memory refuses nothing:
    /// the next call tries again. Waits for another thread that is at it. The mutex isn't held while the plugin runs.
    Result<std::shared_ptr<Plugin>> plugin_of(Candidate &candidate);
    Status unload(std::string_view name);

    Result<std::shared_ptr<Device>> open_one(const DeviceSpec &spec);
    Result<std::vector<std::shared_ptr<Device>>> open_default();
    /// Errors for a device that isn't there, or when there are none at all. They load nothing.
    Status no_such_device(const DeviceSpec &spec);
    Status no_devices();
    /// "a (reason); b (reason)" of the refused candidates, or empty.
    std::string refusals() const;

    const std::shared_ptr<HostServices> services;
    std::vector<SearchDirectory> directories;
    std::vector<std::unique_ptr<Candidate>> candidates;  // constant in number and order
    mutable std::mutex mutex;  // of outcome, plugin and busy; not held across a call into a plugin
    std::condition_variable idle;
};

}  // namespace tenon
