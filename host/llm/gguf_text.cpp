#include "llm/gguf_text.h"

#include <fmt/format.h>

#include <array>
#include <iterator>

namespace tenon::llm {
namespace {

/// Characters that change how a line is laid out: controls, line separators and the bidirectional marks and overrides,
/// with which a name could pretend to be another.
bool disturbs(char32_t c) {
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

std::string escape(char32_t c) {
    switch (c) {
        case '\n': return "\\n";
        case '\t': return "\\t";
        case '\r': return "\\r";
        default: return c < 0x80 ? fmt::format("\\x{:02x}", uint32_t(c)) : fmt::format("\\u{{{:x}}}", uint32_t(c));
    }
}

}  // namespace

size_t utf8_length(std::string_view bytes, char32_t *code_point) noexcept {
    if (bytes.empty()) return 0;
    auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned char first = byte(0);
    const size_t length = first < 0x80   ? 1
                          : first < 0xc2 ? 0
                          : first < 0xe0 ? 2
                          : first < 0xf0 ? 3
                          : first < 0xf5 ? 4
                                         : 0;
    if (length == 0 || length > bytes.size()) return 0;
    char32_t value = length == 1 ? first : first & (0x7f >> length);
    for (size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
        value = value << 6 | (byte(i) & 0x3f);
    }
    // Overlong forms, surrogates, and what lies beyond Unicode.
    constexpr std::array<char32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
    if (value < least[length] || (value >= 0xd800 && value < 0xe000) || value > 0x10ffff) return 0;
    if (code_point != nullptr) *code_point = value;
    return length;
}

std::string printable(std::string_view bytes, size_t max_bytes) {
    std::string out;
    while (!bytes.empty()) {
        char32_t c = 0;
        const size_t length = utf8_length(bytes, &c);
        std::string piece;
        if (length == 0) {
            piece = fmt::format("\\x{:02x}", static_cast<unsigned char>(bytes[0]));
        } else {
            piece = disturbs(c) ? escape(c) : std::string(bytes.substr(0, length));
        }
        if (out.size() + piece.size() > max_bytes) return out + "...";
        out += piece;
        bytes.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

}  // namespace tenon::llm
