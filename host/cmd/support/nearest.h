// "did you mean": the known name that a mistyped one is closest to.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon::cmd {

/// The number of single-character insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
/// (the optimal string alignment distance). Bytes, not characters. Any thread.
size_t edit_distance(std::string_view a, std::string_view b);

/// The name of `names` with the least distance to `typed`, the first among equals; empty where none is near enough to
/// be meant (more than a third of the typed name's length, at least 1, would have to change) unless one begins with it.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> names);

/// "; did you mean 'NAME'?" for the nearest name, or nothing: to be appended to a message.
std::string suggestion(std::string_view typed, std::span<const std::string_view> names);

}  // namespace tenon::cmd
