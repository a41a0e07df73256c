// How the command line makes its registry of plugins: where it looks beyond the library's own places, and what it logs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/registry.h"
#include "tenon/status.h"

namespace tenon::cmd {

class Options;

/// Declares --plugin-dir, which may be given several times.
void add_plugin_dir_option(Options &options, std::vector<std::string> &plugin_dirs);

/// Plugin directories that belong to a program in `program_folder`: "plugins" beside it, as in an unpacked archive, and
/// "../plugins" where that is a CMake build tree. Those that aren't there are left out.
std::vector<std::filesystem::path> program_plugin_dirs(const std::filesystem::path &program_folder);

/// A registry that searches `plugin_dirs` (relative ones from the current directory), the library's own places and the
/// program's directories. verbosity 0: warnings and errors on stderr, 1: also information, 2: all; below 0: errors.
/// invalid_argument: a directory that isn't there.
Result<std::shared_ptr<Registry>> make_registry(const std::vector<std::string> &plugin_dirs, int verbosity = 0);

/// Opens the devices of a list, as Registry::open does. Where something isn't there, the message also says how the
/// command line can tell more and be told where to look.
Result<std::vector<std::shared_ptr<Device>>> open_listed(Registry &registry, std::string_view list);

}  // namespace tenon::cmd
