// Which CPU features this machine offers to programs: what a manifest's "cpu_features" is checked against.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace tenon {

/// The architecture that this library was built for, as `uname -m` names it: "x86_64", "aarch64".
std::string_view host_architecture() noexcept;

/// The features of a text in the format of /proc/cpuinfo ("flags" on x86, "Features" on ARM), normalised.
std::set<std::string> parse_cpu_features(std::string_view cpuinfo);

/// A feature's name in the form in which names are compared: small letters, without '.', '_' and '-', so that "sse4.1",
/// "sse4_1" and "SSE41" are one.
std::string normalised_feature(std::string_view name);

/// This machine's features. The kernel's list rather than CPUID: it leaves out what the operating system doesn't save
/// on a task switch or has switched off, and it is the same on every architecture. Empty where it can't be read.
const std::set<std::string> &host_cpu_features();

}  // namespace tenon
