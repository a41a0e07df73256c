// The arguments of one command: declared once, from which parsing (Boost.Program_options), checking and the help text
// follow. Options are never guessed from a prefix, numbers are read whole and within their range, and what is wrong is
// told in one line.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/status.h"

namespace tenon::cmd {

/// The whole of `text` as a decimal integer in [min, max]; the message says what is allowed. Any thread.
Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max);
/// The whole of `text` as a finite decimal number in [min, max].
Result<double> parse_number(std::string_view text, double min, double max);

/// Declares what a command takes and parses it into the caller's variables, which must outlive `parse`. A variable's
/// value before `parse` is the option's default, shown in the help; an empty optional is shown as no default.
///
///     bool json = false;
///     int64_t count = 128;
///     Options options("score", "Scores a text");
///     options.positional("MODEL", "GGUF file", model)
///         .flag("json", "print one JSON object", json)
///         .integer("tokens,n", "N", "tokens to generate", 0, 1 << 30, count);
///     if (auto exit_code = options.parse(args)) return *exit_code;
///
/// `name` is the long name, with ",x" behind it for a short one. `value` is what stands for the value in the help. Not
/// for several threads.
class Options {
public:
    /// `summary` is the help's first sentence, `details` its last paragraph.
    Options(std::string_view command, std::string_view summary, std::string_view details = {});

    /// A required argument without a name; they are taken in the order of declaration.
    Options &positional(std::string name, std::string help, std::string &out);
    Options &flag(std::string_view name, std::string help, bool &out);
    Options &text(std::string_view name, std::string value, std::string help, std::string &out);
    Options &text(std::string_view name, std::string value, std::string help, std::optional<std::string> &out);
    /// May be given several times; each adds one.
    Options &texts(std::string_view name, std::string value, std::string help, std::vector<std::string> &out);
    Options &integer(std::string_view name, std::string value, std::string help, int64_t min, int64_t max,
                     int64_t &out);
    Options &integer(std::string_view name, std::string value, std::string help, int64_t min, int64_t max,
                     std::optional<int64_t> &out);
    /// An integer, or `word`, which stands for none.
    Options &integer_or(std::string_view name, std::string value, std::string word, std::string help, int64_t min,
                        int64_t max, std::optional<int64_t> &out);
    Options &number(std::string_view name, std::string value, std::string help, double min, double max, double &out);
    Options &number(std::string_view name, std::string value, std::string help, double min, double max,
                    std::optional<double> &out);
    /// One of `choices`, as spelt there.
    Options &choice(std::string_view name, std::string help, std::vector<std::string> choices, std::string &out);
    /// Options (long names) of which at most one may be given.
    Options &exclusive(std::vector<std::string> names);

    /// The exit code where the command should end at once: k_done after `--help` (text on stdout), k_usage after wrong
    /// arguments (message on stderr). Nothing where all is set and the command can go on.
    std::optional<int> parse(std::span<const std::string> args);

    /// What `--help` prints.
    std::string help() const;

private:
    struct Option {
        std::string name;   // without dashes
        char letter = 0;    // the short name; 0 where there is none
        std::string value;  // empty for a flag
        std::string help, fallback;
        bool repeats = false;
        std::function<Status(const std::string &)> set;
        bool given = false;
    };
    struct Positional {
        std::string name, help;
        std::string *out;
    };

    Options &add(std::string_view name, std::string value, std::string help, std::string fallback,
                 std::function<Status(const std::string &)> set);
    Status take(std::span<const std::string> args);
    Status take_positionals(const std::vector<std::string> &values) const;
    Status check_exclusive() const;

    std::string command_, summary_, details_;
    std::vector<Option> options_;
    std::vector<Positional> positionals_;
    std::vector<std::vector<std::string>> exclusive_;
    bool help_wanted_ = false;
};

}  // namespace tenon::cmd
