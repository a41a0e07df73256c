#include "registry/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "base/text.h"
#include "registry/plugin_folder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

std::string variable(const char *name) {
    const char *value = std::getenv(name);
    return value ? value : "";
}

// Without "." and "..", doubled slashes and one at the end, so that one directory has one name.
fs::path normal(const fs::path &path) {
    fs::path out = path.lexically_normal();
    return out.has_filename() || !out.has_relative_path() ? out : out.parent_path();
}

// Whether the folder holds a manifest, or a library that lacks one.
bool looks_like_plugin(const fs::path &folder) {
    std::error_code code;
    if (fs::exists(fs::symlink_status(folder / PluginFolder::k_manifest, code))) return true;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code))
        if (it->path().extension() == ".so") return true;
    return code.value() != 0;  // it can't be read: a candidate, which will be refused with that reason
}

void add_variable_path(std::string_view list, std::vector<SearchDirectory> &out, const Logger &logger) {
    bool more = !list.empty();
    while (more) {
        size_t colon = list.find(':');
        more = colon != std::string_view::npos;
        fs::path entry(list.substr(0, colon));
        list.remove_prefix(more ? colon + 1 : list.size());
        if (entry.is_absolute()) {
            out.push_back({normal(entry), "TENON_PLUGIN_PATH"});
        } else {
            logger.log(LogLevel::warning,
                       "TENON_PLUGIN_PATH: the entry '{}' is ignored, since it isn't an absolute path",
                       printable(entry.native(), 300));
        }
    }
}

// XDG Base Directory Specification: a relative XDG_DATA_HOME is invalid and to be ignored.
fs::path user_directory(const SearchEnvironment &environment) {
    fs::path data = environment.xdg_data_home;
    if (!data.is_absolute()) data = fs::path(environment.home) / ".local/share";
    return data.is_absolute() ? normal(data / "tenon/plugins") : fs::path();
}

}  // namespace

SearchEnvironment SearchEnvironment::of_process() {
    SearchEnvironment out;
    out.raised = raised_privileges();
    out.install_dir = TENON_INSTALL_PLUGIN_DIR;
    if (out.raised) return out;
    out.plugin_path = variable("TENON_PLUGIN_PATH");
    out.xdg_data_home = variable("XDG_DATA_HOME");
    out.home = variable("HOME");
    return out;
}

Result<std::vector<SearchDirectory>> search_directories(const RegistryOptions &options,
                                                        const SearchEnvironment &environment, const Logger &logger) {
    std::vector<SearchDirectory> out;
    if (environment.raised && !options.plugin_dirs.empty()) {
        logger.log(LogLevel::warning,
                   "the given plugin directories are ignored, since this process has more rights than its user");
    }
    if (!environment.raised) {
        for (const fs::path &dir : options.plugin_dirs) {
            std::error_code code;
            fs::path absolute = normal(fs::absolute(dir, code));
            if (dir.empty() || code || !fs::is_directory(absolute, code)) {
                return Status::invalid_argument(
                    fmt::format("plugin directory '{}': {}", printable(dir.native(), 300),
                                code && !dir.empty() ? code.message() : "no such directory"));
            }
            out.push_back({std::move(absolute), "given"});
        }
        if (options.search_environment) add_variable_path(environment.plugin_path, out, logger);
        if (fs::path user = user_directory(environment); options.search_user && !user.empty())
            out.push_back({user, "user"});
    }
    if (!environment.raised) {
        for (const fs::path &dir : options.program_dirs)
            if (dir.is_absolute()) out.push_back({normal(dir), "program"});
    }
    if (options.search_install && environment.install_dir.is_absolute())
        out.push_back({environment.install_dir, "installed"});

    // A directory that is named twice is searched where it came first.
    std::vector<SearchDirectory> once;
    for (SearchDirectory &dir : out)
        if (std::ranges::none_of(once, [&](const SearchDirectory &o) { return o.path == dir.path; }))
            once.push_back(std::move(dir));
    return once;
}

std::vector<fs::path> candidate_folders(const fs::path &directory, const Logger &logger) {
    std::vector<fs::path> out;
    std::error_code code;
    if (!fs::is_directory(directory, code)) return out;
    if (looks_like_plugin(directory)) out.push_back(directory);
    std::vector<fs::path> inner;
    fs::directory_iterator it(directory, code), end;
    for (; !code && it != end; it.increment(code)) {
        std::error_code ignored;  // an entry that vanished, or that nobody may look at, is no folder
        if (it->is_directory(ignored) && looks_like_plugin(it->path())) inner.push_back(it->path());
    }
    if (code) {
        logger.log(LogLevel::warning, "{}: the plugin directory can't be read: {}", printable(directory.native(), 500),
                   code.message());
    }
    std::ranges::sort(inner, {}, [](const fs::path &p) { return p.native(); });
    out.insert(out.end(), inner.begin(), inner.end());
    return out;
}

}  // namespace tenon
