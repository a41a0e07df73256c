#include "llm/gguf_text.h"

#include <fmt/format.h>

#include "llm/tokenizer/utf8.h"

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

std::string escaped(std::string_view bytes, size_t max_bytes) {
    std::string out;
    while (!bytes.empty()) {
        const Utf8Head head = utf8_head(bytes);
        const bool valid = head.kind == Utf8Head::character;
        const std::string_view character = bytes.substr(0, valid ? head.bytes : 1);  // else each byte by itself
        std::string piece;
        if (!valid) {
            piece = fmt::format("\\x{:02x}", static_cast<unsigned char>(character[0]));
        } else if (const char32_t c = utf8_code_point(character); disturbs(c)) {
            piece = escape(c);
        } else {
            piece = character;
        }
        if (out.size() + piece.size() > max_bytes) return out + "...";
        out += piece;
        bytes.remove_prefix(character.size());
    }
    return out;
}

}  // namespace tenon::llm
