// A plugin's manifest: one JSON object that says what a plugin folder holds, so that nothing has to be opened to know.
//
//   {"manifest": 1, "name": "cpu", "vendor": "...", "version": "1.0.0", "abi": {"major": 1, "min": 0, "max": 0},
//    "arch": "x86_64", "cpu_features": ["avx2"], "file": "tenon_cpu.so", "devices": ["cpu"], "sanitizer": ""}
//
// Every key is needed, "description" may stand beside them, and no other is allowed: a misspelt "cpu_feature" must not
// turn a check off. An entry of "devices" is a device's name, or its base name, which stands for all its indices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/status.h"

namespace tenon {

struct Manifest {
    std::string name, vendor, version, description;
    uint32_t abi_major = 0, abi_min = 0, abi_max = 0;
    std::string arch;
    std::vector<std::string> cpu_features;
    std::string file;                  // a plain name in the manifest's folder
    std::vector<std::string> devices;  // in small letters: "cpu", "vulkan:1"
    std::string sanitizer;             // "", "address,undefined", ...
};

inline constexpr size_t k_max_manifest_bytes = 64 * 1024;

/// Reads a manifest's text. invalid_argument tells the byte or the key that is wrong. Pure; any thread.
Status parse_manifest(std::string_view json, Manifest &out);

/// A device's name in parts: "vulkan:1" is ("vulkan", 1).
struct DeviceName {
    std::string base;               // small letters
    std::optional<uint32_t> index;  // none where the name has none
};
/// Nothing where the text isn't NAME or NAME:INDEX. Pure.
std::optional<DeviceName> parse_device_name(std::string_view text);

/// Whether one of the names that a manifest lists covers this device. A name without index counts as number 0 of
/// itself.
bool covers(const std::vector<std::string> &listed, const DeviceName &device);

/// Whether this host can drive it: ABI range, architecture, CPU features, sanitizer. unsupported says what differs.
Status check_manifest(const Manifest &manifest);

/// The sanitizers that this library was built with, in the manifest's form; empty: none.
std::string_view build_sanitizer() noexcept;

}  // namespace tenon
