#include "tenon/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/no_throw.h"
#include "base/text.h"
#include "registry/registry_impl.h"

namespace tenon {
namespace {

// Reads and checks one folder, as far as that goes without opening its library.
Status examine_folder(Candidate &candidate) {
    PluginOutcome &outcome = candidate.outcome;
    TENON_ASSIGN(PluginFolder folder, PluginFolder::open(outcome.folder));
    Result<std::string> text = folder.read_manifest();
    if (text.status().code() == Code::not_found) {
        return Status::not_found(fmt::format("it holds a library but no {}", PluginFolder::k_manifest));
    }
    TENON_TRY(text.status());
    TENON_TRY(parse_manifest(*text, candidate.manifest).in(PluginFolder::k_manifest));
    const Manifest &m = candidate.manifest;
    outcome.name = m.name;
    outcome.vendor = m.vendor;
    outcome.version = m.version;
    outcome.devices = m.devices;
    outcome.abi_min = m.abi_min;
    outcome.abi_max = m.abi_max;
    TENON_TRY(check_manifest(m));
    TENON_TRY(folder.check_library(m).status());
    candidate.folder = std::move(folder);
    return {};
}

void refuse(PluginOutcome &outcome, const Status &status) {
    outcome.state = PluginOutcome::State::refused;
    outcome.reason = status.message();
}

// The plugin's name, or what there is instead of one.
std::string label(const PluginOutcome &outcome) {
    return outcome.name.empty() ? printable(outcome.folder.native(), 500) : outcome.name;
}

}  // namespace

std::string_view state_name(PluginOutcome::State state) noexcept {
    switch (state) {
        case PluginOutcome::State::available: return "available";
        case PluginOutcome::State::loaded: return "loaded";
        case PluginOutcome::State::refused: return "refused";
        case PluginOutcome::State::shadowed: return "shadowed";
    }
    return "unknown";
}

Registry::Registry() = default;
Registry::~Registry() = default;

Result<std::shared_ptr<Registry>> Registry::create(RegistryOptions options) {
    return no_throw([&]() -> Result<std::shared_ptr<Registry>> {
        auto services =
            std::make_shared<HostServices>(options.log, options.plugin_options, options.host_memory_limit_bytes);
        TENON_ASSIGN(auto directories, search_directories(options, SearchEnvironment::of_process(), services->logger));
        std::shared_ptr<Registry> registry(new Registry);
        registry->ops_ = std::shared_ptr<const OpSet>(services, &services->ops);
        registry->impl_ = std::make_unique<Impl>(std::move(services));
        registry->impl_->examine(directories);
        return registry;
    });
}

std::vector<PluginOutcome> Registry::outcomes() const {
    std::lock_guard lock(impl_->mutex);
    std::vector<PluginOutcome> out;
    for (const auto &candidate : impl_->candidates) out.push_back(candidate->outcome);
    return out;
}

std::vector<AdapterInfo> Registry::adapters() {
    std::vector<AdapterInfo> out;
    for (const auto &candidate : impl_->candidates) {
        auto plugin = impl_->plugin_of(*candidate);
        if (!plugin.ok() || !*plugin) continue;
        for (AdapterInfo &adapter : (*plugin)->adapters()) out.push_back(std::move(adapter));
    }
    return out;
}

std::vector<BufferType> Registry::buffer_types() {
    std::vector<std::shared_ptr<Plugin>> loaded;
    {
        std::lock_guard lock(impl_->mutex);
        for (const auto &candidate : impl_->candidates)
            if (candidate->plugin) loaded.push_back(candidate->plugin);
    }
    std::vector<BufferType> out;
    for (const auto &plugin : loaded)
        for (BufferType &type : plugin->buffer_types()) out.push_back(std::move(type));
    return out;
}

Result<std::vector<std::shared_ptr<Device>>> Registry::open(std::string_view list) {
    return no_throw([&]() -> Result<std::vector<std::shared_ptr<Device>>> {
        TENON_ASSIGN(auto specs, parse_device_list(list));
        if (specs.empty()) return impl_->open_default();
        std::vector<std::shared_ptr<Device>> out;
        for (const DeviceSpec &spec : specs) {
            TENON_ASSIGN(auto device, impl_->open_one(spec));
            out.push_back(std::move(device));
        }
        return out;
    });
}

Status Registry::unload(std::string_view plugin) {
    return no_throw([&]() -> Status { return impl_->unload(plugin); });
}

uint64_t Registry::new_cancel_token() {
    return impl_->services->cancel.add();
}
void Registry::raise_cancel(uint64_t token) noexcept {
    impl_->services->cancel.raise(token);
}
void Registry::clear_cancel(uint64_t token) noexcept {
    impl_->services->cancel.clear(token);
}

Registry::HostMemory Registry::host_memory() const {
    const MemoryAccount &m = impl_->services->memory;
    return {m.bytes_now(), m.bytes_peak(), m.allocations()};
}

void Registry::Impl::examine(const std::vector<SearchDirectory> &in) {
    directories = in;
    std::vector<const Candidate *> usable;
    for (const SearchDirectory &directory : in) {
        for (std::filesystem::path &folder : candidate_folders(directory.path, services->logger)) {
            auto candidate = std::make_unique<Candidate>();
            PluginOutcome &outcome = candidate->outcome;
            outcome.folder = std::move(folder);
            outcome.origin = directory.origin;
            Status status = examine_folder(*candidate);
            // A refused plugin shadows nobody: the next one of its name may be all right.
            auto first =
                std::ranges::find_if(usable, [&](const Candidate *c) { return c->outcome.name == outcome.name; });
            if (!status.ok()) {
                refuse(outcome, status);
            } else if (first != usable.end()) {
                outcome.state = PluginOutcome::State::shadowed;
                outcome.reason = fmt::format("a plugin of this name was found before, in {}",
                                             printable((*first)->outcome.folder.native(), 500));
                candidate->folder.reset();
            } else {
                usable.push_back(candidate.get());
            }
            services->logger.log(LogLevel::debug, "plugin {}: {}{}{}", label(outcome), state_name(outcome.state),
                                 outcome.reason.empty() ? "" : ": ", outcome.reason);
            candidates.push_back(std::move(candidate));
        }
    }
}

Result<std::shared_ptr<Plugin>> Registry::Impl::plugin_of(Candidate &candidate) {
    {
        std::unique_lock lock(mutex);
        idle.wait(lock, [&] { return !candidate.busy; });
        if (candidate.outcome.state != PluginOutcome::State::available) return candidate.plugin;
        candidate.busy = true;
    }
    Result<std::shared_ptr<Plugin>> plugin =
        no_throw([&] { return Plugin::load(*candidate.folder, candidate.manifest, services); });
    {
        std::lock_guard lock(mutex);
        candidate.busy = false;
        if (plugin.ok()) {
            candidate.plugin = *plugin;
            candidate.outcome.state = PluginOutcome::State::loaded;
            candidate.outcome.abi_chosen = int((*plugin)->minor());
        } else if (plugin.status().code() != Code::out_of_memory) {
            refuse(candidate.outcome, plugin.status());
        }
    }
    idle.notify_all();
    if (plugin.ok()) return plugin;
    const bool refused = plugin.status().code() != Code::out_of_memory;
    services->logger.log(LogLevel::warning, "plugin {} was {}: {}", candidate.manifest.name,
                         refused ? "refused" : "not loaded", plugin.status().message());
    if (refused) return std::shared_ptr<Plugin>();
    return std::move(plugin).status().in(candidate.manifest.name);
}

Status Registry::Impl::unload(std::string_view name) {
    Candidate *found = nullptr;
    std::shared_ptr<Plugin> plugin;
    {
        std::unique_lock lock(mutex);
        for (const auto &candidate : candidates)
            if (candidate->plugin && candidate->outcome.name == name) found = candidate.get();
        if (!found) return Status::not_found(fmt::format("no plugin '{}' is loaded", printable(name, 100)));
        if (found->busy) return {Code::busy, fmt::format("{}: it is being unloaded", name)};
        found->busy = true;
        plugin = found->plugin;
    }
    Status status = plugin->unload();
    {
        std::lock_guard lock(mutex);
        found->busy = false;
        if (status.ok()) {
            found->plugin.reset();
            found->outcome.state = PluginOutcome::State::available;
            found->outcome.abi_chosen = -1;
        }
    }
    idle.notify_all();
    return status;
}

}  // namespace tenon
