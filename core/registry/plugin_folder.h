// A plugin's folder on disk: what is checked before a library is opened, and how it is opened so that what was checked
// is what gets loaded.
//
// The folder is held open as a descriptor from the first check on, and all that follows goes through that descriptor.
// The loader gets the path /proc/<pid>/fd/<folder>/<file>: whoever renames or exchanges folders further up changes
// nothing any more, and within the folder only its owner (root or the running user) can write. Opening the file's own
// descriptor would pin even the file, but the loader takes $ORIGIN from the path, so that libraries shipped beside the
// plugin would no longer be found. Opening by the plain path and comparing afterwards would be too late: constructors
// have run.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/unique_fd.h"
#include "registry/manifest.h"
#include "tenon/status.h"

namespace tenon {

/// Which file it is, whatever its path: device and inode.
struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    auto operator<=>(const FileId &) const = default;
};

/// Whether the system gave this process more rights than its user has (set-user-id, file capabilities).
bool raised_privileges() noexcept;

/// An opened folder. One thread at a time; const methods any thread.
class PluginFolder {
public:
    /// denied: owned by somebody else, or others may write to it. not_found: no such folder.
    static Result<PluginFolder> open(const std::filesystem::path &path);

    /// The text of the manifest. denied: owner or rights of the file; invalid_argument: not a regular file or too long.
    Result<std::string> read_manifest() const;

    /// Checks the library that the manifest names: owner, rights, a regular file of this folder (symbolic links may
    /// only lead to a name in it), a shared object of this machine's kind. Answers its identity.
    Result<FileId> check_library(const Manifest &manifest) const;

    const std::filesystem::path &path() const { return path_; }
    /// A second descriptor of the same folder.
    Result<UniqueFd> duplicate() const;

    static constexpr const char *k_manifest = "manifest.json";

private:
    PluginFolder(std::filesystem::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}
    std::filesystem::path path_;
    UniqueFd fd_;
};

/// The path of an entry of an open folder, through /proc; see the head of this file.
Result<std::string> path_through(int folder_fd, const std::string &file);

}  // namespace tenon
