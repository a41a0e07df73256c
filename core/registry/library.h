// Shared libraries in this process. The one thing here that can't be an object of a registry: the dynamic loader is the
// process', knows each file once, and two registries that load the same file share it.
#pragma once

#include <boost/dll/shared_library.hpp>
#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "registry/plugin_folder.h"
#include "tenon/abi.h"
#include "tenon/status.h"

namespace tenon {

/// While it lives, no other thread opens, queries, loads, unloads or closes the same library: the calls that the ABI
/// marks [exclusive] for the plugin. It is a mark, not a lock: other libraries go on, and so do calls into this one's
/// objects.
class LibraryTurn {
public:
    /// Waits for its turn.
    explicit LibraryTurn(FileId id);
    ~LibraryTurn();
    LibraryTurn(const LibraryTurn &) = delete;
    LibraryTurn &operator=(const LibraryTurn &) = delete;

private:
    FileId id_;
    LibraryTurn *next_ = nullptr;  // in the list of all turns, so that taking one needs no memory
};

/// An opened library. Shared by all who open the same file; closed with the last, in that one's LibraryTurn, if all
/// said that it can be.
class Library : public std::enable_shared_from_this<Library> {
public:
    /// Opens a file of the folder, or answers the library that is open already. To be called in a LibraryTurn of `id`.
    /// internal: the loader's own words.
    static Result<std::shared_ptr<Library>> open(const PluginFolder &folder, const std::string &file, FileId id);
    ~Library();
    Library(const Library &) = delete;
    Library &operator=(const Library &) = delete;

    /// The plugin's export. not_found: it hasn't got it.
    Result<tn_plugin_query_v1_fn> query() const;

    /// From now on the library stays in the process for good. In a LibraryTurn. Allocates nothing.
    void stay() noexcept;

private:
    Library(boost::dll::shared_library library, UniqueFd folder, FileId id, std::string path);

    boost::dll::shared_library library_;
    UniqueFd folder_;  // see the destructor
    FileId id_;
    std::string path_;
    std::shared_ptr<Library> self_;  // of one that stays
};

}  // namespace tenon
