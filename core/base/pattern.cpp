#include "base/pattern.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tenon {
namespace {

std::string reason_of(int error) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error, message, sizeof message);
    return reinterpret_cast<const char *>(message);
}

}  // namespace

Result<Pattern> Pattern::compile(const std::string &text) {
    int error = 0;
    PCRE2_SIZE at = 0;
    Pattern pattern;
    pattern.text_ = text;
    // Owned at once: what follows may want memory.
    pattern.code_ = std::shared_ptr<const void>(
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, &error, &at, nullptr),
        [](const void *p) { pcre2_code_free(static_cast<pcre2_code *>(const_cast<void *>(p))); });
    if (pattern.code_) return pattern;
    if (error == PCRE2_ERROR_HEAP_FAILED) return Status::out_of_memory(fmt::format("no memory for '{}'", text));
    return Status::invalid_argument(
        fmt::format("'{}' is no regular expression: {} at character {}", text, reason_of(error), at + 1));
}

Result<bool> Pattern::found_in(std::string_view subject) const {
    const auto *code = static_cast<const pcre2_code *>(code_.get());
    pcre2_match_data *match = pcre2_match_data_create(1, nullptr);
    if (!match) return Status::out_of_memory(fmt::format("no memory to search for '{}'", text_));
    const int found =
        pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), 0, 0, match, nullptr);
    pcre2_match_data_free(match);
    if (found >= 0) return true;
    if (found == PCRE2_ERROR_NOMATCH) return false;
    const Code code_of = found == PCRE2_ERROR_NOMEMORY ? Code::out_of_memory : Code::invalid_argument;
    return Status(code_of, fmt::format("searching '{}' for '{}' gave up: {}", subject, text_, reason_of(found)));
}

}  // namespace tenon
