#include "cmd/support/registry_options.h"

#include <system_error>

#include "cmd/support/options.h"

namespace tenon::cmd {

namespace fs = std::filesystem;

void add_plugin_dir_option(Options &options, std::vector<std::string> &plugin_dirs) {
    options.texts("plugin-dir", "DIR", "look for plugins in DIR first", plugin_dirs);
}

std::vector<fs::path> program_plugin_dirs(const fs::path &program_folder) {
    std::vector<fs::path> out;
    std::error_code code;
    if (fs::path beside = program_folder / "plugins"; fs::is_directory(beside, code)) out.push_back(beside);
    // Only a build tree's: a "plugins" above some bin/ is somebody else's.
    const fs::path above = program_folder.parent_path();
    if (fs::is_regular_file(above / "CMakeCache.txt", code) && fs::is_directory(above / "plugins", code)) {
        out.push_back(above / "plugins");
    }
    return out;
}

Result<std::shared_ptr<Registry>> make_registry(const std::vector<std::string> &plugin_dirs, int verbosity) {
    RegistryOptions options;
    options.plugin_dirs.assign(plugin_dirs.begin(), plugin_dirs.end());
    std::error_code code;
    // Where the program itself lies; not known without /proc, and then only the other places are searched.
    if (fs::path program = fs::read_symlink("/proc/self/exe", code); !code) {
        options.program_dirs = program_plugin_dirs(program.parent_path());
    }
    const LogLevel least = verbosity < 0    ? LogLevel::error
                           : verbosity == 0 ? LogLevel::warning
                           : verbosity == 1 ? LogLevel::info
                                            : LogLevel::debug;
    options.log = stderr_log(least);
    return Registry::create(std::move(options));
}

Result<std::vector<std::shared_ptr<Device>>> open_listed(Registry &registry, std::string_view list) {
    auto devices = registry.open(list);
    if (devices.ok() || devices.status().code() != Code::not_found) return devices;
    return Status::not_found(devices.status().message() +
                             " ('tenon plugins --all' lists the plugins; --plugin-dir DIR adds a directory of them)");
}

}  // namespace tenon::cmd
