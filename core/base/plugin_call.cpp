#include "base/plugin_call.h"

#include <fmt/format.h>

#include <cstring>
#include <new>
#include <string>

#include "base/text.h"

namespace tenon {
namespace {

// Plain storage: setting it needs no memory, and it has no destructor that could run before a plugin's own thread ends.
struct PluginText {
    size_t bytes;
    char text[2000];
};
thread_local PluginText t_text;

Code known_code(tn_status status) {
    return status > TN_OK && status <= TN_INTERNAL ? Code(status) : Code::internal;
}

}  // namespace

void clear_plugin_text() noexcept {
    t_text.bytes = 0;
}

void set_plugin_text(const char *text) noexcept {
    t_text.bytes = 0;
    if (!text) return;
    std::string_view all(text, strnlen(text, sizeof t_text.text + 1));
    t_text.bytes = utf8_prefix(all, sizeof t_text.text);
    std::memcpy(t_text.text, text, t_text.bytes);
}

Status plugin_failure(std::string_view plugin, std::string_view call, tn_status status) noexcept try {
    Code code = known_code(status);
    std::string text = printable({t_text.text, t_text.bytes});
    clear_plugin_text();
    std::string unknown;
    if (code == Code::internal && status != TN_INTERNAL)
        unknown = fmt::format(" (status {}, which the ABI doesn't list)", status);
    if (text.empty())
        return {code, fmt::format("{}: {} answered '{}'{} and gave no reason", plugin, call, code_name(code), unknown)};
    std::string prefix = fmt::format("{}: ", plugin);
    if (text.starts_with(prefix)) text.erase(0, prefix.size());
    return {code, prefix + text + unknown};
} catch (const std::bad_alloc &) {
    return {known_code(status), "a plugin failed"};  // short enough to need no memory
}

}  // namespace tenon
