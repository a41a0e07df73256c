// tenon devices: the devices that could be opened, as all usable plugins tell. Opens none.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cmd/command.h"
#include "cmd/support/options.h"
#include "cmd/support/output.h"
#include "cmd/support/registry_options.h"
#include "tenon/registry.h"

namespace tenon::cmd {
namespace {

using Json = nlohmann::ordered_json;

std::string size_text(uint64_t bytes) {
    const double mib = double(bytes) / double(1 << 20);
    return mib < 1024 ? fmt::format("{:.1f} MiB", mib) : fmt::format("{:.1f} GiB", mib / 1024);
}

std::string memory(const AdapterInfo &adapter) {
    if (adapter.total_bytes == 0) return "unknown";
    return fmt::format("{} of {} free", size_text(adapter.free_bytes), size_text(adapter.total_bytes));
}

std::string kind(const AdapterInfo &adapter) {
    return fmt::format("{}{}", kind_name(adapter.kind), adapter.software ? " (software)" : "");
}

void print_json(const std::vector<AdapterInfo> &adapters, Output &out) {
    Json list = Json::array();
    for (const AdapterInfo &a : adapters) {
        list.push_back({{"name", a.name},
                        {"kind", kind_name(a.kind)},
                        {"description", a.description},
                        {"bus_id", a.bus_id},
                        {"plugin", a.plugin},
                        {"software", a.software},
                        {"asynchronous", a.asynchronous},
                        {"total_bytes", a.total_bytes},
                        {"free_bytes", a.free_bytes}});
    }
    out.print("{}\n", json_text({{"devices", list}}));
}

void print_table(const std::vector<AdapterInfo> &adapters, Output &out) {
    size_t name = 4, kinds = 4, memories = 6, plugin = 6;
    for (const AdapterInfo &a : adapters) {
        name = std::max(name, a.name.size());
        kinds = std::max(kinds, kind(a).size());
        memories = std::max(memories, memory(a).size());
        plugin = std::max(plugin, a.plugin.size());
    }
    auto line = [&](std::string_view n, std::string_view k, std::string_view m, std::string_view p,
                    std::string_view d) {
        out.print("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {}\n", n, name, k, kinds, m, memories, p, plugin, d);
    };
    line("NAME", "KIND", "MEMORY", "PLUGIN", "DESCRIPTION");
    for (const AdapterInfo &a : adapters) {
        std::string description = a.description;
        if (!a.bus_id.empty()) description += fmt::format(" ({})", a.bus_id);
        line(a.name, kind(a), memory(a), a.plugin, description);
    }
}

Status show(const std::vector<std::string> &plugin_dirs, bool json, Output &out) {
    TENON_ASSIGN(auto registry, make_registry(plugin_dirs));
    const std::vector<AdapterInfo> adapters = registry->adapters();
    if (json)
        print_json(adapters, out);
    else if (!adapters.empty())
        print_table(adapters, out);
    // None is an error, so that a script notices; the registry knows best where it looked.
    return adapters.empty() ? open_listed(*registry, "").status() : Status();
}

int run(std::span<const std::string> args) {
    std::vector<std::string> plugin_dirs;
    bool json = false;
    Options options(
        "devices", "Lists the devices that --device can name",
        "A list of devices is NAME[:INDEX][:OPTION=VALUE]..., separated by commas, as in "
        "'vulkan:1,cpu:threads=4,isa=avx2'. Without one, accelerators and GPUs are used first, then the CPU.");
    options.flag("json", "print one JSON object: {\"devices\": [...]}", json);
    add_plugin_dir_option(options, plugin_dirs);
    if (auto exit_code = options.parse(args)) return *exit_code;
    Output out("devices");
    const Status status = show(plugin_dirs, json, out);
    return out.finish(status.ok() ? k_done : fail("devices", status));
}

}  // namespace

extern const Command command_devices;
const Command command_devices{"devices", "list the devices that can be used", run};

}  // namespace tenon::cmd
