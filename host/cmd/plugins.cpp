// tenon plugins: the plugins that were found, and with --all why the others aren't used.
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

bool usable(const PluginOutcome &o) {
    return o.state == PluginOutcome::State::available || o.state == PluginOutcome::State::loaded;
}

// Where the user said it.
std::string origin_name(const PluginOutcome &o) {
    return o.origin == "given" ? "--plugin-dir" : o.origin;
}

void print_json(const std::vector<PluginOutcome> &outcomes, Output &out) {
    Json list = Json::array();
    for (const PluginOutcome &o : outcomes) {
        Json row{{"name", o.name},
                 {"vendor", o.vendor},
                 {"version", o.version},
                 {"devices", o.devices},
                 {"abi", {{"min", o.abi_min}, {"max", o.abi_max}}},
                 {"folder", o.folder.string()},
                 {"origin", origin_name(o)},
                 {"state", state_name(o.state)}};
        row["abi"]["chosen"] = o.abi_chosen >= 0 ? Json(o.abi_chosen) : Json();
        row["reason"] = o.reason.empty() ? Json() : Json(o.reason);
        list.push_back(std::move(row));
    }
    out.print("{}\n", json_text({{"plugins", list}}));
}

void print_table(const std::vector<PluginOutcome> &outcomes, Output &out) {
    size_t name = 4, version = 7, state = 5, devices = 7;
    auto device_list = [](const PluginOutcome &o) { return fmt::format("{}", fmt::join(o.devices, ",")); };
    auto name_of = [](const PluginOutcome &o) { return o.name.empty() ? std::string("?") : o.name; };
    for (const PluginOutcome &o : outcomes) {
        name = std::max(name, name_of(o).size());
        version = std::max(version, o.version.size());
        state = std::max(state, state_name(o.state).size());
        devices = std::max(devices, device_list(o).size());
    }
    auto line = [&](std::string_view n, std::string_view v, std::string_view s, std::string_view d,
                    std::string_view f) {
        out.print("{:<{}}  {:<{}}  {:<{}}  {:<{}}  {}\n", n, name, v, version, s, state, d, devices, f);
    };
    line("NAME", "VERSION", "STATE", "DEVICES", "FOLDER");
    for (const PluginOutcome &o : outcomes) {
        line(name_of(o), o.version, state_name(o.state), device_list(o), o.folder.string());
        if (!o.reason.empty()) out.print("{:<{}}  {}\n", "", name, o.reason);
    }
}

Status show(const std::vector<std::string> &plugin_dirs, bool all, bool json, Output &out) {
    // The reasons are printed here, and needn't be warned of as well.
    TENON_ASSIGN(auto registry, make_registry(plugin_dirs, all ? -1 : 0));
    (void)registry->adapters();  // loads what can be loaded: only then is it known to be usable
    std::vector<PluginOutcome> outcomes = registry->outcomes();
    const size_t found = outcomes.size();
    if (!all) std::erase_if(outcomes, [](const PluginOutcome &o) { return !usable(o); });
    if (json) {
        print_json(outcomes, out);
    } else if (!outcomes.empty()) {
        print_table(outcomes, out);
    } else if (all) {
        out.print("no plugin folders were found\n");
    } else {
        out.print("no usable plugin; {}\n", found ? "'tenon plugins --all' tells why" : "no plugin folders were found");
    }
    return {};
}

int run(std::span<const std::string> args) {
    std::vector<std::string> plugin_dirs;
    bool json = false, all = false;
    Options options(
        "plugins", "Lists the plugins that bring devices",
        "A plugin is a folder with a manifest.json and a shared library. It is looked for in --plugin-dir, in the "
        "directories of TENON_PLUGIN_PATH, in ~/.local/share/tenon/plugins, and where Tenon is installed.");
    options.flag("all", "also those that aren't used, with the reason", all)
        .flag("json", "print one JSON object: {\"plugins\": [...]}", json);
    add_plugin_dir_option(options, plugin_dirs);
    if (auto exit_code = options.parse(args)) return *exit_code;
    Output out("plugins");
    const Status status = show(plugin_dirs, all, json, out);
    return out.finish(status.ok() ? k_done : fail("plugins", status));
}

}  // namespace

extern const Command command_plugins;
const Command command_plugins{"plugins", "list the plugins, and why some aren't used", run};

}  // namespace tenon::cmd
