#include "llm/tokenizer/utf8.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace tenon::llm;

namespace {

std::string encode(uint32_t point) {
    if (point < 0x80) return {static_cast<char>(point)};
    if (point < 0x800) return {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
    if (point < 0x10000) {
        return {static_cast<char>(0xE0 | point >> 12), static_cast<char>(0x80 | (point >> 6 & 0x3F)),
                static_cast<char>(0x80 | (point & 0x3F))};
    }
    return {static_cast<char>(0xF0 | point >> 18), static_cast<char>(0x80 | (point >> 12 & 0x3F)),
            static_cast<char>(0x80 | (point >> 6 & 0x3F)), static_cast<char>(0x80 | (point & 0x3F))};
}

}  // namespace

TEST_CASE("utf8: every code point but surrogates is a character, and each of its beginnings is incomplete") {
    int wrong = 0;
    for (uint32_t point = 0; point < 0x110000; ++point) {
        const std::string text = encode(point);
        const Utf8Head head = utf8_head(text);
        const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
        wrong += (head.kind == Utf8Head::character && head.bytes == text.size()) == surrogate;
        wrong += !surrogate && utf8_code_point(text) != point;
        for (size_t length = 1; length < text.size() && !surrogate; ++length) {
            const Utf8Head part = utf8_head(std::string_view(text).substr(0, length));
            wrong += part.kind != Utf8Head::incomplete || part.bytes != length;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("utf8: what no character contains is invalid") {
    for (std::string_view text : {"\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80",
                                  "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
        CHECK(utf8_head(text).kind == Utf8Head::invalid);
        CHECK(utf8_head(text).bytes == 1);
        CHECK(utf8_valid_prefix(text) == 0);
    }
}

TEST_CASE("utf8: one U+FFFD stands for each maximal subpart, as in the standard's example") {
    // The Unicode Standard 15, tables 3-8 to 3-11.
    const std::string r(k_replacement);
    CHECK(utf8_replace_invalid("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41") == r + r + r + r + r + r + r + r + "A");
    CHECK(utf8_replace_invalid("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41") == r + r + r + r + r + r + r + r + "A");
    CHECK(utf8_replace_invalid("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42") == r + r + r + r + r + "A" + r + r + "B");
    CHECK(utf8_replace_invalid("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41") == r + r + r + r + "A");
    CHECK(utf8_replace_invalid("plain, \xC3\xA9 and an end\xE4\xB8") == "plain, \xC3\xA9 and an end" + r);
    CHECK(utf8_replace_invalid("") == "");
}
