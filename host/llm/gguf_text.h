// Bytes from a file, made fit for one line of a message or a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::llm {

/// `bytes` as one line of valid UTF-8 without control characters: these, invalid bytes and the characters that reorder
/// or break lines are written as escapes (`\n`, `\x1b`, `\u{202e}`). A backslash stays one, so that text which is
/// printable already stays as it is. Text over `max_bytes` is cut between characters and ends in "...". Any thread.
std::string escaped(std::string_view bytes, size_t max_bytes = 200);

}  // namespace tenon::llm
