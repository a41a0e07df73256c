// The command line: finds the subcommand, runs it, and lets nothing that it throws past.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "cmd/command.h"
#include "cmd/support/nearest.h"
#include "cmd/support/output.h"

namespace tenon::cmd {

#define TENON_COMMAND(name) extern const Command command_##name;
#include "commands.inc"
#undef TENON_COMMAND

std::span<const Command *const> all_commands() {
    static const Command *const commands[] = {
#define TENON_COMMAND(name) &command_##name,
#include "commands.inc"
#undef TENON_COMMAND
    };
    return commands;
}

namespace {

std::string overview() {
    size_t width = 0;
    for (const Command *command : all_commands()) width = std::max(width, command->name.size());
    std::string out =
        "Usage: tenon COMMAND [ARGUMENT]...\n\nRuns GGUF language models on whatever devices are plugged in.\n"
        "\nCommands:\n";
    for (const Command *command : all_commands()) {
        fmt::format_to(std::back_inserter(out), "  {:<{}}  {}\n", command->name, width, command->summary);
    }
    return out +
           "\n'tenon COMMAND --help' explains a command; 'tenon --version' prints the version.\n"
           "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.\n";
}

int print(std::string_view text) {
    Output out("");
    out.write(text);
    return out.finish();
}

const Command *find_command(std::string_view name) {
    const auto commands = all_commands();
    auto found = std::ranges::find(commands, name, &Command::name);
    return found != commands.end() ? *found : nullptr;
}

int unknown_command(std::string_view name) {
    std::vector<std::string_view> names{"help", "--help", "--version"};
    for (const Command *command : all_commands()) names.push_back(command->name);
    return usage_error("", fmt::format("unknown {} '{}'{}", name.starts_with('-') ? "option" : "command", name,
                                       suggestion(name, names)));
}

int help(std::span<const std::string> args) {
    if (args.empty()) return print(overview());
    if (args.size() > 1) return usage_error("", fmt::format("unexpected argument '{}'", args[1]));
    if (args[0] == "help") return print(overview());
    const Command *command = find_command(args[0]);
    if (command == nullptr) return unknown_command(args[0]);
    const std::vector<std::string> ask{"--help"};
    return command->run(ask);
}

int dispatch(std::span<const std::string> args) {
    if (args.empty()) return usage_error("", "no command given");
    const std::string &name = args[0];
    if (name == "help") return help(args.subspan(1));
    if (name == "--help" || name == "-h" || name == "--version") {
        if (args.size() > 1) return usage_error("", fmt::format("unexpected argument '{}' behind {}", args[1], name));
        return print(name == "--version" ? "tenon " TENON_VERSION "\n" : overview());
    }
    const Command *command = find_command(name);
    return command != nullptr ? command->run(args.subspan(1)) : unknown_command(name);
}

/// A file opened in place of a closed standard stream would get what is meant for the stream. The stand-ins are opened
/// the wrong way round, so that using them fails as using a closed stream does.
void occupy_standard_streams() {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (::fcntl(fd, F_GETFD) < 0) {
            [[maybe_unused]] const int stand_in = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
        }
    }
}

/// The one place that all exceptions end in. What `name` says is the command for messages.
int guarded(std::span<const std::string> args, std::string_view name) {
    try {
        return dispatch(args);
    } catch (const std::bad_alloc &) {
        return fail(name, Status::out_of_memory("out of memory"));
    } catch (const std::exception &error) {
        return fail(name, Status::internal(std::string("internal error: ") + error.what()));
    } catch (...) {
        return fail(name, Status::internal("internal error of unknown kind"));
    }
}

}  // namespace
}  // namespace tenon::cmd

int main(int argc, char **argv) {
    using namespace tenon;
    cmd::occupy_standard_streams();
    // A reader that goes away, of stdout or of a plugin's socket, is an error of the write, not the end of the process.
    std::signal(SIGPIPE, SIG_IGN);
    try {
        const std::vector<std::string> args(argv + std::min(argc, 1), argv + argc);
        return cmd::guarded(args, args.empty() || cmd::find_command(args[0]) == nullptr ? "" : args[0]);
    } catch (...) {
        return cmd::k_failed;  // not even the arguments or a message fit into memory
    }
}
