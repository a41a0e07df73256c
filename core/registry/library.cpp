#include "registry/library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "base/text.h"

namespace tenon {
namespace {

struct Process {
    std::mutex mutex;  // never held while the loader or a plugin runs
    std::condition_variable changed;
    LibraryTurn *turns = nullptr;
    std::map<FileId, std::weak_ptr<Library>> open;
};

// Never destroyed: a library may be let go by another static object's destructor.
Process &process() {
    static Process &instance = *new Process;
    return instance;
}

std::string loader_text() {
    const char *text = dlerror();
    return text ? printable(text, 1000) : "the loader gave no reason";
}

}  // namespace

LibraryTurn::LibraryTurn(FileId id) : id_(id) {
    Process &p = process();
    std::unique_lock lock(p.mutex);
    p.changed.wait(lock, [&] {
        for (const LibraryTurn *turn = p.turns; turn; turn = turn->next_)
            if (turn->id_ == id) return false;
        return true;
    });
    next_ = p.turns;
    p.turns = this;
}

LibraryTurn::~LibraryTurn() {
    Process &p = process();
    {
        std::lock_guard lock(p.mutex);
        LibraryTurn **at = &p.turns;
        while (*at != this) at = &(*at)->next_;
        *at = next_;
    }
    p.changed.notify_all();
}

Library::Library(boost::dll::shared_library library, UniqueFd folder, FileId id, std::string path)
    : library_(std::move(library)), folder_(std::move(folder)), id_(id), path_(std::move(path)) {}

Result<std::shared_ptr<Library>> Library::open(const PluginFolder &folder, const std::string &file, FileId id) {
    Process &p = process();
    {
        std::lock_guard lock(p.mutex);
        if (auto found = p.open.find(id); found != p.open.end())
            if (auto library = found->second.lock()) return library;
    }
    TENON_ASSIGN(UniqueFd fd, folder.duplicate());
    TENON_ASSIGN(std::string path, path_through(fd.get(), file));
    namespace dll = boost::dll;
    dll::fs::error_code code;
    dll::shared_library handle;
    handle.load(path, code, dll::load_mode::rtld_now | dll::load_mode::rtld_local);
    if (code || !handle.is_loaded()) {
        std::string text = loader_text();  // Boost's code is always the same one
        // The loader speaks of the path through /proc, which means nothing to a reader.
        if (size_t at = text.find(path); at != std::string::npos) text.replace(at, path.size(), file);
        return Status::internal(fmt::format("the loader can't open it: {}", text));
    }
    std::shared_ptr<Library> library(new Library(std::move(handle), std::move(fd), id, std::move(path)));
    std::lock_guard lock(p.mutex);
    p.open[id] = library;
    return library;
}

Library::~Library() {
    library_.unload();
    // The loader looks libraries up by path first. If this one didn't go (a unique symbol, or somebody else holds it),
    // its path has to go on meaning what it meant: a reused descriptor would make another plugin's path name this
    // library.
    if (void *still = dlopen(path_.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
        dlclose(still);
        folder_.release();
    }
    Process &p = process();
    std::lock_guard lock(p.mutex);
    if (auto found = p.open.find(id_); found != p.open.end() && found->second.expired()) p.open.erase(found);
}

Result<tn_plugin_query_v1_fn> Library::query() const {
    void *symbol = dlsym(library_.native(), "tn_plugin_query_v1");
    if (!symbol) return Status::not_found(fmt::format("it doesn't export tn_plugin_query_v1"));
    return reinterpret_cast<tn_plugin_query_v1_fn>(symbol);
}

void Library::stay() noexcept {
    if (!self_) self_ = weak_from_this().lock();
}

}  // namespace tenon
