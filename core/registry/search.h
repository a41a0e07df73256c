// Where plugins are looked for, and which folders there are candidates. Reads directories; opens no plugin.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "tenon/registry.h"
#include "tenon/status.h"

namespace tenon {

/// What the search takes from the process; read once, so that tests can give their own.
struct SearchEnvironment {
    std::string plugin_path;    // TENON_PLUGIN_PATH: absolute directories, colon-separated
    std::string xdg_data_home;  // XDG_DATA_HOME
    std::string home;           // HOME
    std::filesystem::path install_dir;
    bool raised = false;  // more rights than the user has: only install_dir is searched

    static SearchEnvironment of_process();
};

struct SearchDirectory {
    std::filesystem::path path;  // absolute
    std::string origin;          // as in PluginOutcome
};

/// The directories in order: options.plugin_dirs, TENON_PLUGIN_PATH, the user's data directory,
/// options.program_dirs, the install prefix. Empty and relative entries of variables are left out, since they would
/// mean the current directory; what is left out is logged. invalid_argument: a directory of options.plugin_dirs isn't
/// there.
Result<std::vector<SearchDirectory>> search_directories(const RegistryOptions &options,
                                                        const SearchEnvironment &environment, const Logger &logger);

/// Plugin folders of a directory, sorted by name: the directory itself if it holds a manifest (or loose libraries,
/// which will be refused), and each folder in it that holds one or the other. A directory that isn't there has none.
std::vector<std::filesystem::path> candidate_folders(const std::filesystem::path &directory, const Logger &logger);

}  // namespace tenon
