// UTF-8 as Unicode defines it (The Unicode Standard, section 3.9, table 3-7): well-formed sequences only, so no
// surrogates, no overlong forms and nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tenon::llm {

/// U+FFFD, which stands for bytes that aren't UTF-8.
inline constexpr std::string_view k_replacement = "\xEF\xBF\xBD";

/// What stands at the beginning of some bytes.
struct Utf8Head {
    enum Kind {
        character,   // a well-formed character of `bytes` bytes
        incomplete,  // all `bytes` bytes there are begin a character whose rest is missing
        invalid,     // `bytes` bytes (1 to 3) that no well-formed character can contain in this way
    };
    Kind kind = invalid;
    size_t bytes = 0;
};

/// Looks at the first character of `text`, which isn't empty. `invalid` covers a maximal subpart, as Unicode recommends
/// for replacing (section 3.9, U+FFFD substitution): one U+FFFD stands for it. Any thread.
Utf8Head utf8_head(std::string_view text) noexcept;

/// The code point that `character`, one whole well-formed character, stands for. Any thread.
char32_t utf8_code_point(std::string_view character) noexcept;

/// The length of the longest prefix of `text` that is well-formed. Any thread.
size_t utf8_valid_prefix(std::string_view text) noexcept;

/// `text` with each maximal invalid subpart, an unfinished end included, replaced by U+FFFD. Any thread.
std::string utf8_replace_invalid(std::string_view text);

}  // namespace tenon::llm
