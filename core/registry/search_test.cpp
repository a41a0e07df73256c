#include "registry/search.h"

#include <doctest/doctest.h>

#include "registry/fixture_folder.h"

using namespace tenon;
using namespace tenon::fixture;
namespace fs = std::filesystem;

namespace {

struct Search {
    LogLines lines;
    RegistryOptions options;
    SearchEnvironment environment;

    std::vector<std::pair<std::string, std::string>> run() {
        auto found = search_directories(options, environment, Logger(lines.function()));
        REQUIRE_MESSAGE(found.ok(), found.status().message());
        std::vector<std::pair<std::string, std::string>> out;
        for (const SearchDirectory &dir : *found) out.emplace_back(dir.path.string(), dir.origin);
        return out;
    }
};
using Found = std::vector<std::pair<std::string, std::string>>;

}  // namespace

TEST_CASE("search: given, variable, user, program, installed, in this order") {
    TempDir dir;
    Search s;
    s.options.plugin_dirs = {dir.path()};
    s.options.program_dirs = {"/opt/build/plugins"};
    s.environment = {"/b:/a/", "/data", "/home/u", "/usr/lib/tenon/plugins", false};
    CHECK(s.run() == Found{{dir.path().string(), "given"},
                           {"/b", "TENON_PLUGIN_PATH"},
                           {"/a", "TENON_PLUGIN_PATH"},
                           {"/data/tenon/plugins", "user"},
                           {"/opt/build/plugins", "program"},
                           {"/usr/lib/tenon/plugins", "installed"}});
    s.options.search_environment = s.options.search_user = s.options.search_install = false;
    s.options.program_dirs.clear();
    CHECK(s.run() == Found{{dir.path().string(), "given"}});
}

TEST_CASE("search: with raised privileges the install prefix only") {
    TempDir dir;
    Search s;
    s.options.plugin_dirs = {dir.path()};
    s.options.program_dirs = {"/opt/build/plugins"};
    s.environment = {"/b", "/data", "/home/u", "/usr/lib/tenon/plugins", true};
    CHECK(s.run() == Found{{"/usr/lib/tenon/plugins", "installed"}});
    CHECK(s.lines.contains("the given plugin directories are ignored"));
}

TEST_CASE("search: never the current directory") {
    Search s;
    s.environment = {"rel:./x::/abs:", "relative/data", "", "", false};
    CHECK(s.run() == Found{{"/abs", "TENON_PLUGIN_PATH"}});
    CHECK(s.lines.contains("'rel' is ignored"));
    CHECK(s.lines.contains("'./x' is ignored"));
    CHECK(s.lines.contains("'' is ignored"));
    s.environment = {"", "", "not/absolute", "", false};
    CHECK(s.run().empty());
    s.environment = {"", "relative", "/home/u", "", false};
    CHECK(s.run() == Found{{"/home/u/.local/share/tenon/plugins", "user"}});
}

TEST_CASE("search: a given directory may be relative, and has to be there") {
    TempDir dir;
    Search s;
    s.environment = {};
    s.options.plugin_dirs = {fs::relative(dir.path())};
    CHECK(s.run() == Found{{dir.path().string(), "given"}});
    for (const char *bad : {"/nowhere/at/all", "", "/etc/passwd"}) {
        s.options.plugin_dirs = {bad};
        auto found = search_directories(s.options, s.environment, Logger(s.lines.function()));
        CHECK(found.status().code() == Code::invalid_argument);
        CHECK_HAS(found.status().message(), fmt::format("'{}'", bad));
    }
}

TEST_CASE("search: one directory named twice is searched once") {
    Search s;
    s.environment = {"/a:/b:/a/", "", "", "/b", false};
    CHECK(s.run() == Found{{"/a", "TENON_PLUGIN_PATH"}, {"/b", "TENON_PLUGIN_PATH"}});
}

TEST_CASE("search: folders with a manifest or a library, sorted; the directory itself may be one") {
    LogLines lines;
    Logger logger(lines.function());
    TempDir dir;
    for (const char *name : {"zeta", "alpha", "docs", "loose"}) make_folder(dir.path() / name);
    write_file(dir.path() / "zeta/manifest.json", "{}");
    write_file(dir.path() / "alpha/manifest.json", "{}");
    write_file(dir.path() / "docs/readme.txt", "no plugin");
    write_file(dir.path() / "loose/x.so", "");
    CHECK(candidate_folders(dir.path(), logger) ==
          std::vector<fs::path>{dir.path() / "alpha", dir.path() / "loose", dir.path() / "zeta"});
    CHECK(candidate_folders(dir.path() / "alpha", logger) == std::vector<fs::path>{dir.path() / "alpha"});
    CHECK(candidate_folders(dir.path() / "nowhere", logger).empty());
}
