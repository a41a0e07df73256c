// For the registry's tests: temporary plugin directories, filled with the fixtures of tests/faulty.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "registry/cpu_features.h"
#include "registry/manifest.h"
#include "tenon/registry.h"

namespace tenon::fixture {

/// A new directory that goes with the object.
class TempDir {
public:
    TempDir() {
        std::string name = (std::filesystem::temp_directory_path() / "tenon_test_XXXXXX").string();
        REQUIRE(mkdtemp(name.data()));
        path_ = name;
    }
    ~TempDir() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    TempDir(const TempDir &) = delete;
    const std::filesystem::path &path() const { return path_; }

private:
    std::filesystem::path path_;
};

inline void write_file(const std::filesystem::path &path, std::string_view text, mode_t mode = 0644) {
    std::ofstream(path, std::ios::binary) << text;
    REQUIRE(chmod(path.c_str(), mode) == 0);
}

inline std::filesystem::path library_of(const std::string &fixture) {
    return std::filesystem::path(TENON_FIXTURE_DIR) / (fixture + ".so");
}

/// A manifest that is right for the fixture on this machine.
inline nlohmann::json manifest_of(const std::string &name) {
    return {{"manifest", 1},
            {"name", name},
            {"vendor", "Tenon"},
            {"version", "1.2.3"},
            {"abi", {{"major", 1}, {"min", 0}, {"max", 0}}},
            {"arch", host_architecture()},
            {"cpu_features", nlohmann::json::array()},
            {"file", name + ".so"},
            {"devices", {name}},
            {"sanitizer", build_sanitizer()}};
}

inline void make_folder(const std::filesystem::path &folder) {
    std::filesystem::create_directories(folder);
    REQUIRE(chmod(folder.c_str(), 0755) == 0);
}

/// Puts a fixture into directory/folder (folder: by default its name), with this manifest.
inline std::filesystem::path add_plugin(const std::filesystem::path &directory, const std::string &fixture,
                                        const nlohmann::json &manifest, std::string folder = {}) {
    std::filesystem::path to = directory / (folder.empty() ? fixture : folder);
    make_folder(to);
    std::filesystem::copy_file(library_of(fixture), to / (fixture + ".so"),
                               std::filesystem::copy_options::overwrite_existing);
    REQUIRE(chmod((to / (fixture + ".so")).c_str(), 0755) == 0);
    write_file(to / "manifest.json", manifest.dump());
    return to;
}
inline std::filesystem::path add_plugin(const std::filesystem::path &directory, const std::string &fixture) {
    return add_plugin(directory, fixture, manifest_of(fixture));
}

/// Log lines as "level text", from any thread.
class LogLines {
public:
    LogFunction function() {
        return [this](LogLevel level, std::string_view text) {
            std::lock_guard lock(mutex_);
            lines_.push_back(fmt::format("{} {}", int(level), text));
        };
    }
    bool contains(std::string_view text) const {
        std::lock_guard lock(mutex_);
        for (const std::string &line : lines_)
            if (line.find(text) != std::string::npos) return true;
        return false;
    }

private:
    mutable std::mutex mutex_;
    std::vector<std::string> lines_;
};

/// Options that search these directories and nothing else, and log into `log`.
inline RegistryOptions only(std::vector<std::filesystem::path> directories, LogLines &log) {
    RegistryOptions options;
    options.plugin_dirs = std::move(directories);
    options.search_environment = options.search_user = options.search_install = false;
    options.log = log.function();
    return options;
}

inline std::shared_ptr<Registry> registry_of(RegistryOptions options) {
    auto registry = Registry::create(std::move(options));
    REQUIRE_MESSAGE(registry.ok(), registry.status().message());
    return *registry;
}

inline bool has(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

}  // namespace tenon::fixture

/// Checks that `text` holds `part`, and shows both where it doesn't.
#define CHECK_HAS(text, part) CHECK_MESSAGE(::tenon::fixture::has(text, part), "'", (part), "' isn't in: ", (text))
