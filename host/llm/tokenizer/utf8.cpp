#include "llm/tokenizer/utf8.h"

#include <cstdint>
#include <cstring>

namespace tenon::llm {

namespace {

struct LeadByte {
    size_t length;      // of the whole character; 0: no character begins so
    uint8_t low, high;  // what the second byte may be
};

LeadByte lead(uint8_t byte) noexcept {
    if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};  // below: overlong
    if (byte == 0xED) return {3, 0x80, 0x9F};  // above: surrogates
    if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};  // below: overlong
    if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};  // above: over U+10FFFF
    return {0, 0, 0};
}

}  // namespace

Utf8Head utf8_head(std::string_view text) noexcept {
    const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    if (byte(0) < 0x80) return {Utf8Head::character, 1};
    const LeadByte first = lead(byte(0));
    if (first.length == 0) return {Utf8Head::invalid, 1};
    for (size_t i = 1; i < first.length; ++i) {
        if (i == text.size()) return {Utf8Head::incomplete, i};
        const uint8_t low = i == 1 ? first.low : 0x80, high = i == 1 ? first.high : 0xBF;
        if (byte(i) < low || byte(i) > high) return {Utf8Head::invalid, i};
    }
    return {Utf8Head::character, first.length};
}

char32_t utf8_code_point(std::string_view character) noexcept {
    const auto first = static_cast<uint8_t>(character[0]);
    // A lead byte of n > 1 bytes begins with n ones and a zero.
    char32_t point = character.size() == 1 ? first : first & (0x7Fu >> character.size());
    for (const char next : character.substr(1)) point = point << 6 | (static_cast<uint8_t>(next) & 0x3F);
    return point;
}

size_t utf8_valid_prefix(std::string_view text) noexcept {
    size_t done = 0;
    while (done < text.size()) {
        uint64_t eight;
        if (text.size() - done >= sizeof eight) {
            std::memcpy(&eight, text.data() + done, sizeof eight);
            if ((eight & 0x8080808080808080u) == 0) {
                done += sizeof eight;
                continue;
            }
        }
        const Utf8Head head = utf8_head(text.substr(done));
        if (head.kind != Utf8Head::character) break;
        done += head.bytes;
    }
    return done;
}

std::string utf8_replace_invalid(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const size_t valid = utf8_valid_prefix(text);
        out += text.substr(0, valid);
        text.remove_prefix(valid);
        if (text.empty()) break;
        out += k_replacement;
        text.remove_prefix(utf8_head(text).bytes);
    }
    return out;
}

}  // namespace tenon::llm
