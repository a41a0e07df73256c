// Finds plugins, checks them before they are opened, loads the ones that are asked for, and opens devices by name.
// An object, never a global: two registries in one process don't know of each other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/log.h"
#include "tenon/status.h"

namespace tenon {

class OpSet;  // tenon/op_set.h

struct RegistryOptions {
    /// Searched first, in this order (origin "given"); one that isn't there fails. Ignored with raised privileges.
    std::vector<std::filesystem::path> plugin_dirs;
    /// Whether TENON_PLUGIN_PATH and the user's data directory are searched; never with raised privileges.
    bool search_environment = true;
    bool search_user = true;
    /// Directories beside the program, as in a build tree: searched after the user's, not with raised privileges. One
    /// that isn't there is no error.
    std::vector<std::filesystem::path> program_dirs;
    /// Whether the install prefix is searched (last).
    bool search_install = true;
    /// Options that plugins may ask for by "<plugin>.<key>".
    std::map<std::string, std::string> plugin_options;
    /// Host memory that plugins may take through the host's table; 0: no limit.
    uint64_t host_memory_limit_bytes = 0;
    /// Where log lines go, called from any thread, as long as the registry or anything made from it lives; default:
    /// stderr, warnings and errors only.
    LogFunction log;
};

/// What became of one plugin folder.
struct PluginOutcome {
    enum class State { available, loaded, refused, shadowed };
    std::filesystem::path folder;
    std::string origin;                 // "given", "TENON_PLUGIN_PATH", "user", "program", "installed"
    std::string name, vendor, version;  // from the manifest, where it could be read
    std::vector<std::string> devices;   // names of the devices that it may bring; one without index stands for all
    uint32_t abi_min = 0, abi_max = 0;
    int abi_chosen = -1;  // minor, once loaded
    State state = State::available;
    std::string reason;  // why refused or shadowed, in words
};
std::string_view state_name(PluginOutcome::State state) noexcept;

class Registry {
public:
    /// Reads all manifests (opens nothing). A folder that is refused is kept with its reason; only a bad option fails.
    static Result<std::shared_ptr<Registry>> create(RegistryOptions options);
    ~Registry();
    Registry(const Registry &) = delete;
    Registry &operator=(const Registry &) = delete;

    /// Every candidate, in search order. Any thread.
    std::vector<PluginOutcome> outcomes() const;

    /// Adapters of all usable plugins, loading them all; opens no device.
    std::vector<AdapterInfo> adapters();

    /// Buffer types of plugins loaded so far that need no opened device (host, high-bandwidth memory).
    std::vector<BufferType> buffer_types();

    /// Opens the devices of a list `NAME[:INDEX][:K=V]...`, comma-separated, where an item K=V continues the device
    /// before it; empty: the default list (accelerators and GPUs that aren't software, then CPUs). Names are compared
    /// without case. Loads only plugins whose manifest names a device of the list. Errors name the item and what there
    /// is.
    Result<std::vector<std::shared_ptr<Device>>> open(std::string_view list);

    /// Unloads a plugin by name; busy while objects of it live.
    Status unload(std::string_view plugin);

    /// Standard ops and those that loaded plugins have registered.
    const OpSet &ops() const { return *ops_; }

    /// A new cancel token, never given twice; 0, which can't be raised, where memory ran out. Raising it stops the runs
    /// that carry it. Raising is safe in a signal handler.
    uint64_t new_cancel_token();
    void raise_cancel(uint64_t token) noexcept;
    void clear_cancel(uint64_t token) noexcept;

    /// Host memory that plugins hold, and how many times they asked for some.
    struct HostMemory {
        uint64_t bytes_now = 0, bytes_peak = 0, allocations = 0;
    };
    HostMemory host_memory() const;

private:
    Registry();
    struct Impl;
    std::unique_ptr<Impl> impl_;
    std::shared_ptr<const OpSet> ops_;
};

}  // namespace tenon
