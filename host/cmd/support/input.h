// The text that a command works on: from -p, from -f, or from stdin.
#pragma once

#include <optional>
#include <string>

#include "tenon/status.h"

namespace tenon::cmd {

class Options;

/// Where a command's text comes from, as the user chose it.
struct TextSource {
    std::optional<std::string> prompt;  // -p
    std::optional<std::string> file;    // -f; "-" is stdin
};

/// Declares `--prompt,-p` and `--file,-f`, of which at most one may be given.
void add_text_options(Options &options, TextSource &source);

/// The text's bytes exactly as given, a final line feed included, whether or not they are valid UTF-8. Neither option:
/// stdin to its end, unless that is a terminal. Errors: not_found, denied, invalid_argument (a directory, a terminal,
/// or more than 1 GiB).
Result<std::string> read_text(const TextSource &source);

}  // namespace tenon::cmd
