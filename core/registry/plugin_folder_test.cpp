#include "registry/plugin_folder.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "registry/fixture_folder.h"

using namespace tenon;
using namespace tenon::fixture;
namespace fs = std::filesystem;

static Status library_status(const fs::path &path, const std::string &file = "good.so") {
    auto folder = PluginFolder::open(path);
    if (!folder.ok()) return std::move(folder).status();
    Manifest manifest;
    manifest.file = file;
    return folder->check_library(manifest).status();
}

TEST_CASE("plugin folder: what only root and the running user can change is accepted") {
    TempDir dir;
    fs::path path = add_plugin(dir.path(), "good");
    CHECK(library_status(path).ok());
    auto folder = PluginFolder::open(path);
    REQUIRE(folder.ok());
    auto text = folder->read_manifest();
    REQUIRE(text.ok());
    CHECK(nlohmann::json::parse(*text) == manifest_of("good"));
}

TEST_CASE("plugin folder: what others can write to is refused: folder, manifest, library") {
    TempDir dir;
    fs::path path = add_plugin(dir.path(), "good");
    for (mode_t extra : {mode_t(020), mode_t(002)}) {
        chmod(path.c_str(), 0755 | extra);
        Status status = PluginFolder::open(path).status();
        CHECK(status.code() == Code::denied);
        CHECK_HAS(status.message(), extra == 020 ? "its group" : "others");
        chmod(path.c_str(), 0755);
        chmod((path / "manifest.json").c_str(), 0644 | extra);
        CHECK(PluginFolder::open(path)->read_manifest().status().code() == Code::denied);
        chmod((path / "manifest.json").c_str(), 0644);
        chmod((path / "good.so").c_str(), 0755 | extra);
        CHECK(library_status(path).code() == Code::denied);
        chmod((path / "good.so").c_str(), 0755);
    }
    CHECK(library_status(path).ok());
}

TEST_CASE("plugin folder: another user's folder or files are refused") {
    if (geteuid() != 0) {
        MESSAGE("skipped: only root can give files away");
        return;
    }
    TempDir dir;
    fs::path path = add_plugin(dir.path(), "good");
    REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK_HAS(PluginFolder::open(path).status().message(), "owned by user 12345");
    REQUIRE(chown(path.c_str(), 0, 0) == 0);
    REQUIRE(chown((path / "good.so").c_str(), 12345, 0) == 0);
    CHECK_HAS(library_status(path).message(), "good.so is owned by user 12345");
}

TEST_CASE("plugin folder: links stay within the folder") {
    TempDir dir;
    fs::path path = add_plugin(dir.path(), "good");
    fs::create_symlink("good.so", path / "link.so");
    fs::create_symlink("link.so", path / "second.so");
    CHECK(library_status(path, "second.so").ok());
    fs::create_symlink(path / "good.so", path / "absolute.so");
    fs::create_symlink("../good/good.so", path / "up.so");
    fs::create_symlink("..", path / "dots.so");
    for (const char *file : {"absolute.so", "up.so", "dots.so"})
        CHECK_HAS(library_status(path, file).message(), "leaves the plugin's folder");
    fs::create_symlink("loop.so", path / "loop.so");
    CHECK_HAS(library_status(path, "loop.so").message(), "too many");
    fs::create_symlink("nowhere.so", path / "dangling.so");
    CHECK(library_status(path, "dangling.so").code() == Code::not_found);
}

TEST_CASE("plugin folder: what isn't a shared object for this machine is refused before it is opened") {
    TempDir dir;
    fs::path path = add_plugin(dir.path(), "good");
    CHECK_HAS(library_status(path, "missing.so").message(), "missing");
    write_file(path / "empty.so", "");
    CHECK_HAS(library_status(path, "empty.so").message(), "isn't an ELF");
    write_file(path / "text.so", "#!/bin/sh\necho this is no library at all\n");
    CHECK_HAS(library_status(path, "text.so").message(), "isn't an ELF");
    make_folder(path / "folder.so");
    CHECK_HAS(library_status(path, "folder.so").message(), "isn't a regular file");
    REQUIRE(mkfifo((path / "fifo.so").c_str(), 0644) == 0);
    CHECK_HAS(library_status(path, "fifo.so").message(), "isn't a regular file");

    std::ifstream in(path / "good.so", std::ios::binary);
    const std::string elf{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    auto changed = [&](size_t at, char value, const char *expected) {
        std::string other = elf;
        other[at] = value;
        write_file(path / "other.so", other);
        CHECK_HAS(library_status(path, "other.so").message(), expected);
    };
    changed(4, 1, "32-bit");
    changed(5, 2, "byte order");
    changed(16, 2, "no shared object");
    changed(18, 40, "another kind of machine");
    changed(39, 0x7f, "cut off");  // e_phoff far beyond the end
    for (size_t size : {size_t(100), size_t(4096)}) {
        write_file(path / "cut.so", elf.substr(0, size));
        CHECK_HAS(library_status(path, "cut.so").message(), "cut off");
    }
}

TEST_CASE("plugin folder: a manifest that is missing, no file, or too long") {
    TempDir dir;
    make_folder(dir.path() / "a");
    auto folder = PluginFolder::open(dir.path() / "a");
    REQUIRE(folder.ok());
    CHECK(folder->read_manifest().status().code() == Code::not_found);
    make_folder(dir.path() / "a/manifest.json");
    CHECK_HAS(folder->read_manifest().status().message(), "isn't a regular file");
    fs::remove(dir.path() / "a/manifest.json");
    write_file(dir.path() / "a/manifest.json", std::string(k_max_manifest_bytes + 1, ' '));
    CHECK_HAS(folder->read_manifest().status().message(), "longer than");
    CHECK(PluginFolder::open(dir.path() / "b").status().code() == Code::not_found);
}
