// Text from outside (plugins, manifests, file names), made fit for messages and JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon {

/// `text` with control characters turned into spaces and bytes that aren't UTF-8 into '?', cut to `max_bytes` at a
/// character's border. Any thread.
std::string printable(std::string_view text, size_t max_bytes = 2000);

/// Bytes at the start of `text` that are at most `max_bytes` and end with a whole character. Doesn't allocate.
size_t utf8_prefix(std::string_view text, size_t max_bytes) noexcept;

/// ASCII letters made small; all else as it is.
std::string ascii_lower(std::string_view text);

}  // namespace tenon
