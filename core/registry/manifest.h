// A plugin's manifest: one JSON object that says what a plugin folder holds, so that nothing has to be opened to know.
//
//   {"manifest": 1, "name": "cpu", "vendor": "...", "version": "1.0.0", "abi": {"major": 1, "min": 0, "max": 0},
//    "arch": "x86_64", "cpu_features": ["avx2"], "file": "tenon_cpu.so", "devices": ["cpu"], "sanitizer": ""}
//
// Every key is needed and no other is allowed: a misspelt "cpu_feature" must not turn a check off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/status.h"

namespace tenon {

struct Manifest {
    std::string name, vendor, version;
    uint32_t abi_major = 0, abi_min = 0, abi_max = 0;
    std::string arch;
    std::vector<std::string> cpu_features;
    std::string file;                  // a plain name in the manifest's folder
    std::vector<std::string> devices;  // base names of the adapters it may bring, in small letters
    std::string sanitizer;             // "", "address,undefined", ...
};

inline constexpr size_t k_max_manifest_bytes = 64 * 1024;

/// Reads a manifest's text. invalid_argument tells the byte or the key that is wrong. Pure; any thread.
Status parse_manifest(std::string_view json, Manifest &out);

/// Whether this host can drive it: ABI range, architecture, CPU features, sanitizer. unsupported says what differs.
Status check_manifest(const Manifest &manifest);

/// The sanitizers that this library was built with, in the manifest's form; empty: none.
std::string_view build_sanitizer() noexcept;

}  // namespace tenon
