// From the items of a device list to opened devices, and the words for what isn't there.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "registry/registry_impl.h"

namespace tenon {
namespace {

// An adapter without index is number 0 of its name, for the user as for the plugin.
bool names(const DeviceSpec &spec, const std::string &adapter) {
    auto name = parse_device_name(adapter);
    return name && name->base == spec.base && name->index.value_or(0) == spec.index.value_or(0);
}

struct Found {
    std::shared_ptr<Plugin> plugin;
    AdapterInfo adapter;
};

// Order of the default list; -1: not in it.
int default_rank(const AdapterInfo &adapter) {
    if (adapter.software) return -1;
    switch (adapter.kind) {
        case DeviceKind::accelerator: return 0;
        case DeviceKind::gpu: return 1;
        case DeviceKind::integrated: return 2;
        case DeviceKind::cpu: return 3;
    }
    return -1;
}

}  // namespace

Result<std::shared_ptr<Device>> Registry::Impl::open_one(const DeviceSpec &spec) {
    for (const auto &candidate : candidates) {
        if (!covers(candidate->outcome.devices, {spec.base, spec.index}))
            continue;  // devices don't change after examine
        TENON_ASSIGN(const auto plugin, plugin_of(*candidate));
        if (!plugin) continue;
        for (const AdapterInfo &adapter : plugin->adapters()) {
            if (!names(spec, adapter.name)) continue;
            auto device = plugin->open_device(adapter.name, spec.options);
            if (!device.ok()) return std::move(device).status().in(fmt::format("device {}", spec.name()));
            return device;
        }
    }
    return no_such_device(spec);
}

Result<std::vector<std::shared_ptr<Device>>> Registry::Impl::open_default() {
    std::vector<Found> found;
    std::string others;
    Status last;
    for (const auto &candidate : candidates) {
        auto plugin = plugin_of(*candidate);
        if (!plugin.ok()) last = plugin.status();
        if (!plugin.ok() || !*plugin) continue;
        for (AdapterInfo &adapter : (*plugin)->adapters()) {
            if (default_rank(adapter) >= 0) {
                found.push_back({*plugin, std::move(adapter)});
            } else {
                others += (others.empty() ? "" : ", ") + adapter.name;
            }
        }
    }
    if (found.empty() && !others.empty()) {
        return Status::not_found(
            fmt::format("there are only software devices, which have to be asked for by name: {}", others));
    }
    std::ranges::stable_sort(found, {}, [](const Found &f) { return default_rank(f.adapter); });
    std::vector<std::shared_ptr<Device>> out;
    for (const Found &f : found) {
        auto device = f.plugin->open_device(f.adapter.name, {});
        if (device.ok()) {
            out.push_back(*device);
            continue;
        }
        // Nobody asked for this one by name: the others will do.
        last = std::move(device).status().in(fmt::format("device {}", f.adapter.name));
        services->logger.log(LogLevel::warning, "{}; going on without it", last.message());
    }
    if (!out.empty()) return out;
    return last.ok() ? no_devices() : last;
}

std::string Registry::Impl::refusals() const {
    std::lock_guard lock(mutex);
    std::string out;
    for (const auto &candidate : candidates) {
        const PluginOutcome &o = candidate->outcome;
        if (o.state != PluginOutcome::State::refused) continue;
        std::string name = o.name.empty() ? printable(o.folder.native(), 500) : o.name;
        out += fmt::format("{}{} ({})", out.empty() ? "" : "; ", name, o.reason);
    }
    return out;
}

Status Registry::Impl::no_such_device(const DeviceSpec &spec) {
    // A misspelt name is no reason to run the code of plugins that nobody asked for: of those the manifests tell.
    std::vector<std::shared_ptr<Plugin>> loaded;
    std::vector<std::string> there, possible;
    {
        std::lock_guard lock(mutex);
        for (const auto &candidate : candidates) {
            const PluginOutcome &o = candidate->outcome;
            if (candidate->plugin)
                loaded.push_back(candidate->plugin);
            else if (o.state == PluginOutcome::State::available)
                possible.insert(possible.end(), o.devices.begin(), o.devices.end());
        }
    }
    for (const auto &plugin : loaded)
        for (AdapterInfo &adapter : plugin->adapters()) there.push_back(std::move(adapter.name));
    std::string text = fmt::format("no device '{}'", printable(spec.name(), 100));
    if (there.empty() && possible.empty()) return no_devices().in(text);
    if (!there.empty()) text += fmt::format("; there are: {}", fmt::join(there, ", "));
    if (!possible.empty()) text += fmt::format("; plugins that aren't loaded may bring: {}", fmt::join(possible, ", "));
    if (std::string refused = refusals(); !refused.empty()) text += fmt::format("; refused plugins: {}", refused);
    return Status::not_found(std::move(text));
}

Status Registry::Impl::no_devices() {
    bool usable = false;
    {
        std::lock_guard lock(mutex);
        usable = std::ranges::any_of(candidates, [](const auto &c) { return c->plugin != nullptr; });
    }
    std::string refused = refusals();
    std::string text = usable ? "the plugins that were found bring no device" : "no usable plugin was found";
    if (!refused.empty()) text += fmt::format("; refused: {}", refused);
    if (!usable) {
        std::string looked;
        for (const SearchDirectory &dir : directories) {
            looked +=
                fmt::format("{}{} ({})", looked.empty() ? "" : ", ", printable(dir.path.native(), 500), dir.origin);
        }
        text += fmt::format(
            "; looked in: {}. Put a plugin's folder into one of these, or name the directory that holds it in "
            "TENON_PLUGIN_PATH",
            looked.empty() ? "nowhere" : looked);
    }
    return Status::not_found(std::move(text));
}

}  // namespace tenon
