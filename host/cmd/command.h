// What a subcommand of the command line is: one file x.cpp in this folder that defines `command_x`. The build collects
// the folder, so that a new command edits no list. What commands share stands in support/.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tenon/status.h"

namespace tenon::cmd {

/// Exit codes of the program (DESIGN section 5).
inline constexpr int k_done = 0, k_failed = 1, k_usage = 2, k_interrupted = 130;

/// A subcommand. `run` gets the arguments behind the command's name and answers the exit code; failures are printed to
/// stderr as "tenon NAME: message" by the command itself through `fail`. An exception that escapes it is told by main,
/// exit code 1.
struct Command {
    std::string_view name;     // "run"
    std::string_view summary;  // one line for `tenon --help`
    int (*run)(std::span<const std::string> args);
};

/// Prints "tenon NAME: message" to stderr and answers k_interrupted for a cancelled status, else k_failed. Control
/// characters in the message are escaped, so that nothing from a file reaches the terminal as a command; line feeds
/// stay.
int fail(std::string_view command, const Status &status);

/// Prints the same with a pointer to the command's help behind it, and answers k_usage. An empty `command` stands for
/// the program itself.
int usage_error(std::string_view command, std::string_view message);

/// All commands, by name.
std::span<const Command *const> all_commands();

}  // namespace tenon::cmd
