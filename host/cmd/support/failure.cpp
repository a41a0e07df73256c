#include <fmt/format.h>

#include <cstdio>
#include <limits>

#include "cmd/command.h"
#include "llm/gguf_text.h"

namespace tenon::cmd {
namespace {

/// In one write, so that lines of several processes don't mix. A message that stderr doesn't take is lost: there is no
/// other place to tell it.
void complain(std::string_view command, std::string_view message) {
    std::string text = command.empty() ? "tenon: " : fmt::format("tenon {}: ", command);
    for (size_t begin = 0, end = 0; end != message.npos; begin = end + 1) {
        end = message.find('\n', begin);
        if (begin != 0) text += '\n';
        text += llm::escaped(message.substr(begin, end - begin), std::numeric_limits<size_t>::max());
    }
    text += '\n';
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

}  // namespace

int fail(std::string_view command, const Status &status) {
    complain(command, status.message().empty() ? code_name(status.code()) : std::string_view(status.message()));
    return status.code() == Code::cancelled ? k_interrupted : k_failed;
}

int usage_error(std::string_view command, std::string_view message) {
    complain(command,
             fmt::format("{} (see 'tenon {}--help')", message, command.empty() ? "" : fmt::format("{} ", command)));
    return k_usage;
}

}  // namespace tenon::cmd
