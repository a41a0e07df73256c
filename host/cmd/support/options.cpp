#include "cmd/support/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>
#include <limits>

#include "cmd/command.h"
#include "cmd/support/nearest.h"
#include "cmd/support/output.h"

namespace tenon::cmd {
namespace {

namespace po = boost::program_options;

// No allow_guessing: a prefix that is unique today is ambiguous after the next option.
constexpr int k_style = po::command_line_style::allow_long | po::command_line_style::long_allow_next |
                        po::command_line_style::long_allow_adjacent | po::command_line_style::allow_short |
                        po::command_line_style::allow_dash_for_short | po::command_line_style::short_allow_next |
                        po::command_line_style::short_allow_adjacent;
constexpr size_t k_width = 100, k_max_indent = 32;  // of the help text, in columns

/// "at least 1", "from 0 to 1": the range in words, without the ends that only the type sets.
template <class T>
std::string range(T min, T max) {
    const bool low = min > std::numeric_limits<T>::lowest(), high = max < std::numeric_limits<T>::max();
    if (low && high) return fmt::format(" from {} to {}", min, max);
    if (low) return fmt::format(" of at least {}", min);
    return high ? fmt::format(" of at most {}", max) : "";
}

template <class T>
Result<T> parse_whole(std::string_view text, T min, T max, std::string_view kind) {
    T value{};
    const char *end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    bool good = error == std::errc() && rest == end && value >= min && value <= max;
    if constexpr (std::is_floating_point_v<T>) good = good && std::isfinite(value);
    if (good) return value;
    return Status::invalid_argument(fmt::format("'{}' isn't {}{}", text, kind, range(min, max)));
}

/// Appends `text`, broken between words so that no line passes k_width, lines after the first indented.
void wrap(std::string &out, std::string_view text, size_t column, size_t indent) {
    while (!text.empty()) {
        const size_t end = std::min(text.find(' '), text.size());
        if (column > indent && column + 1 + end > k_width) {
            out += '\n' + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            out += ' ';
            ++column;
        }
        out += text.substr(0, end);
        column += end;
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

/// Two columns: names, and what they mean.
std::string table(const std::vector<std::pair<std::string, std::string>> &rows) {
    size_t indent = 0;
    for (const auto &[left, right] : rows) indent = std::max(indent, left.size() + 4);
    indent = std::min(indent, k_max_indent);
    std::string out;
    for (const auto &[left, right] : rows) {
        out += fmt::format("  {:<{}}", left, indent - 2);
        if (left.size() + 4 > indent) out += '\n' + std::string(indent, ' ');
        wrap(out, right, indent, indent);
        out += '\n';
    }
    return out;
}

}  // namespace

Result<int64_t> parse_integer(std::string_view text, int64_t min, int64_t max) {
    return parse_whole(text, min, max, "an integer");
}

Result<double> parse_number(std::string_view text, double min, double max) {
    return parse_whole(text, min, max, "a number");
}

Options::Options(std::string_view command, std::string_view summary, std::string_view details)
    : command_(command), summary_(summary), details_(details) {
    add("help,h", "", "print this help", "", [this](const std::string &) {
        help_wanted_ = true;
        return Status();
    });
}

Options &Options::add(std::string_view name, std::string value, std::string help, std::string fallback,
                      std::function<Status(const std::string &)> set) {
    Option option;
    const size_t comma = name.find(',');
    option.name = name.substr(0, comma);
    if (comma != name.npos && comma + 1 < name.size()) option.letter = name[comma + 1];
    option.value = std::move(value);
    option.help = std::move(help);
    option.fallback = std::move(fallback);
    option.set = std::move(set);
    options_.push_back(std::move(option));
    return *this;
}

Options &Options::positional(std::string name, std::string help, std::string &out) {
    positionals_.push_back({std::move(name), std::move(help), &out});
    return *this;
}

Options &Options::flag(std::string_view name, std::string help, bool &out) {
    return add(name, "", std::move(help), "", [&out](const std::string &) {
        out = true;
        return Status();
    });
}

Options &Options::text(std::string_view name, std::string value, std::string help, std::string &out) {
    return add(name, std::move(value), std::move(help), out, [&out](const std::string &text) {
        out = text;
        return Status();
    });
}

Options &Options::text(std::string_view name, std::string value, std::string help, std::optional<std::string> &out) {
    return add(name, std::move(value), std::move(help), out.value_or(""), [&out](const std::string &text) {
        out = text;
        return Status();
    });
}

Options &Options::texts(std::string_view name, std::string value, std::string help, std::vector<std::string> &out) {
    add(name, std::move(value), std::move(help), "", [&out](const std::string &text) {
        out.push_back(text);
        return Status();
    });
    options_.back().repeats = true;
    return *this;
}

Options &Options::integer(std::string_view name, std::string value, std::string help, int64_t min, int64_t max,
                          int64_t &out) {
    return add(name, std::move(value), std::move(help), fmt::to_string(out), [=, &out](const std::string &text) {
        TENON_ASSIGN(out, parse_integer(text, min, max));
        return Status();
    });
}

Options &Options::integer(std::string_view name, std::string value, std::string help, int64_t min, int64_t max,
                          std::optional<int64_t> &out) {
    std::string fallback = out ? fmt::to_string(*out) : "";
    return add(name, std::move(value), std::move(help), std::move(fallback), [=, &out](const std::string &text) {
        TENON_ASSIGN(out, parse_integer(text, min, max));
        return Status();
    });
}

Options &Options::integer_or(std::string_view name, std::string value, std::string word, std::string help, int64_t min,
                             int64_t max, std::optional<int64_t> &out) {
    std::string fallback = out ? fmt::to_string(*out) : word;
    const auto set = [=, &out](const std::string &text) -> Status {
        out.reset();
        if (text == word) return {};
        auto number = parse_integer(text, min, max);
        if (!number.ok()) return std::move(number).status().in(fmt::format("expected '{}' or a number", word));
        out = *number;
        return {};
    };
    return add(name, std::move(value), std::move(help), std::move(fallback), set);
}

Options &Options::number(std::string_view name, std::string value, std::string help, double min, double max,
                         double &out) {
    return add(name, std::move(value), std::move(help), fmt::to_string(out), [=, &out](const std::string &text) {
        TENON_ASSIGN(out, parse_number(text, min, max));
        return Status();
    });
}

Options &Options::number(std::string_view name, std::string value, std::string help, double min, double max,
                         std::optional<double> &out) {
    std::string fallback = out ? fmt::to_string(*out) : "";
    return add(name, std::move(value), std::move(help), std::move(fallback), [=, &out](const std::string &text) {
        TENON_ASSIGN(out, parse_number(text, min, max));
        return Status();
    });
}

Options &Options::choice(std::string_view name, std::string help, std::vector<std::string> choices, std::string &out) {
    std::string value = fmt::format("{}", fmt::join(choices, "|"));
    return add(
        name, std::move(value), std::move(help), out, [choices = std::move(choices), &out](const std::string &text) {
            if (std::ranges::find(choices, text) == choices.end()) {
                return Status::invalid_argument(fmt::format("'{}' isn't one of {}", text, fmt::join(choices, ", ")));
            }
            out = text;
            return Status();
        });
}

Options &Options::exclusive(std::vector<std::string> names) {
    exclusive_.push_back(std::move(names));
    return *this;
}

std::optional<int> Options::parse(std::span<const std::string> args) {
    Status status;
    try {
        status = take(args);
    } catch (const po::unknown_option &error) {
        std::vector<std::string_view> names;
        for (const Option &option : options_) names.push_back(option.name);
        std::string typed = error.get_option_name();
        typed.erase(0, typed.find_first_not_of('-'));
        const std::string_view name = nearest(typed, names);
        status = Status::invalid_argument(fmt::format("unknown option '{}'{}", error.get_option_name(),
                                                      name.empty() ? "" : fmt::format("; did you mean '--{}'?", name)));
    } catch (const po::error &error) {
        status = Status::invalid_argument(error.what());
    }
    if (help_wanted_) {
        Output out(command_);
        out.write(help());
        return out.finish();
    }
    if (!status.ok()) return usage_error(command_, status.message());
    return std::nullopt;
}

Status Options::take(std::span<const std::string> args) {
    po::options_description description;
    for (const Option &option : options_) {
        const std::string name = option.letter == 0 ? option.name : fmt::format("{},{}", option.name, option.letter);
        if (option.value.empty()) {
            description.add_options()(name.c_str(), "");
        } else {
            description.add_options()(name.c_str(), po::value<std::string>(), "");
        }
    }
    const std::vector<std::string> tokens(args.begin(), args.end());
    const auto parsed = po::command_line_parser(tokens).options(description).style(k_style).run();

    std::vector<std::string> positionals;
    for (const auto &item : parsed.options) {
        if (item.position_key >= 0) {
            positionals.insert(positionals.end(), item.value.begin(), item.value.end());
            continue;
        }
        auto option = std::ranges::find(options_, item.string_key, &Option::name);
        if (option == options_.end())
            return Status::internal(fmt::format("option '{}' isn't declared", item.string_key));
        if (option->given && !option->repeats) {
            return Status::invalid_argument(fmt::format("'--{}' is given more than once", option->name));
        }
        option->given = true;
        TENON_TRY(option->set(item.value.empty() ? std::string() : item.value.front()).in("--" + option->name));
    }
    if (help_wanted_) return {};
    TENON_TRY(check_exclusive());
    return take_positionals(positionals);
}

Status Options::check_exclusive() const {
    for (const auto &names : exclusive_) {
        const Option *first = nullptr;
        for (const Option &option : options_) {
            if (!option.given || std::ranges::find(names, option.name) == names.end()) continue;
            if (first != nullptr) {
                return Status::invalid_argument(
                    fmt::format("'--{}' and '--{}' can't be given together", first->name, option.name));
            }
            first = &option;
        }
    }
    return {};
}

Status Options::take_positionals(const std::vector<std::string> &values) const {
    for (size_t i = 0; i < positionals_.size(); ++i) {
        if (i >= values.size()) return Status::invalid_argument(positionals_[i].name + " is missing");
        *positionals_[i].out = values[i];
    }
    if (values.size() > positionals_.size()) {
        return Status::invalid_argument(fmt::format("unexpected argument '{}'", values[positionals_.size()]));
    }
    return {};
}

std::string Options::help() const {
    std::string out = "Usage: tenon " + command_;
    std::vector<std::pair<std::string, std::string>> arguments, rows;
    for (const Positional &argument : positionals_) {
        out += ' ' + argument.name;
        arguments.emplace_back(argument.name, argument.help);
    }
    out += " [OPTION]...\n\n";
    wrap(out, summary_ + ".", 0, 0);
    out += '\n';
    for (const Option &option : options_) {
        std::string left = option.letter != 0 ? fmt::format("-{}, ", option.letter) : "    ";
        left += "--" + option.name + (option.value.empty() ? "" : " " + option.value);
        std::string right = option.help;
        if (option.repeats) right += " (may be given several times)";
        if (!option.fallback.empty()) right += fmt::format(" (default: {})", option.fallback);
        rows.emplace_back(std::move(left), std::move(right));
    }
    std::ranges::rotate(rows, rows.begin() + 1);  // --help was declared first and is shown last
    if (!arguments.empty()) out += "\nArguments:\n" + table(arguments);
    out += "\nOptions:\n" + table(rows);
    if (!details_.empty()) {
        out += '\n';
        wrap(out, details_, 0, 0);
        out += '\n';
    }
    return out;
}

}  // namespace tenon::cmd
