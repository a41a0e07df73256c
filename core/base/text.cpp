#include "base/text.h"

namespace tenon {
namespace {

// Length of the valid UTF-8 character at the start of `text` (not empty), or 0: RFC 3629, section 4.
size_t utf8_character(std::string_view text) noexcept {
    auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    auto tail = [&](size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xbf; };
    unsigned first = byte(0), second = byte(1);
    if (first < 0x80) return 1;
    if (first >= 0xc2 && first <= 0xdf) return tail(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef) {
        bool fits = (first != 0xe0 || second >= 0xa0) && (first != 0xed || second <= 0x9f);
        return fits && tail(1) && tail(2) ? 3 : 0;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        bool fits = (first != 0xf0 || second >= 0x90) && (first != 0xf4 || second <= 0x8f);
        return fits && tail(1) && tail(2) && tail(3) ? 4 : 0;
    }
    return 0;
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
    std::string out;
    while (!text.empty()) {
        size_t size = utf8_character(text);
        if (out.size() + (size ? size : 1) > max_bytes) break;
        unsigned char first = static_cast<unsigned char>(text[0]);
        if (size == 0) {
            out += '?';
        } else if (first < 0x20 || first == 0x7f || (first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0)) {
            out += ' ';
        } else {
            out += text.substr(0, size);
        }
        text.remove_prefix(size ? size : 1);
    }
    return out;
}

size_t utf8_prefix(std::string_view text, size_t max_bytes) noexcept {
    if (text.size() <= max_bytes) return text.size();
    size_t end = max_bytes;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
    return end;
}

std::string ascii_lower(std::string_view text) {
    std::string out(text);
    for (char &c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return out;
}

}  // namespace tenon
