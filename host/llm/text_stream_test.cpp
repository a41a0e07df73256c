#include "llm/text_stream.h"

#include <doctest/doctest.h>

#include <random>

#include "llm/tokenizer/utf8.h"

using namespace tenon::llm;

namespace {

const std::string k_r(k_replacement);

/// Everything that comes out of a stream that is given `text` in pieces that end at `cuts`.
std::string all(const std::vector<std::string> &stops, std::string_view text, const std::vector<size_t> &cuts,
                bool *stopped = nullptr) {
    TextStream stream(stops);
    std::string out;
    size_t from = 0;
    for (size_t cut : cuts) {
        out += stream.push(text.substr(from, cut - from));
        from = cut;
    }
    out += stream.push(text.substr(from));
    out += stream.finish();
    CHECK(stream.finish() == "");
    if (stopped != nullptr) *stopped = stream.stopped();
    return out;
}

/// What is to come out, by the definition: decoded, then cut before the stop that is completed first.
std::string expected(const std::vector<std::string> &stops, std::string_view text) {
    const std::string decoded = utf8_replace_invalid(text);
    for (size_t end = 1; end <= decoded.size(); ++end) {
        size_t longest = 0;
        for (const std::string &stop : stops) {
            if (!stop.empty() && std::string_view(decoded).substr(0, end).ends_with(stop)) {
                longest = std::max(longest, stop.size());
            }
        }
        if (longest > 0) return decoded.substr(0, end - longest);
    }
    return decoded;
}

}  // namespace

TEST_CASE("text stream: characters come out whole, as soon as they are") {
    TextStream stream;
    CHECK(stream.push("a\xE4\xB8") == "a");
    CHECK(stream.push("\x96") == "\xE4\xB8\x96");
    CHECK(stream.push("\xF0") == "");
    CHECK(stream.push("\x9F\x99") == "");
    CHECK(stream.push("\x82!") == "\xF0\x9F\x99\x82!");
    CHECK(stream.push("") == "");
    CHECK(stream.finish() == "");
}

TEST_CASE(
    "text stream: invalid bytes are U+FFFD when they are known to be invalid, an unfinished character at the end") {
    TextStream stream;
    CHECK(stream.push("\xFF") == k_r);
    CHECK(stream.push("\xE4\xB8") == "");
    CHECK(stream.push("A") == k_r + "A");
    CHECK(stream.push("\xED\xA0") == k_r + k_r);
    CHECK(stream.push("\xF0\x9F") == "");
    CHECK(stream.finish() == k_r);
    CHECK(stream.push("more") == "");
}

TEST_CASE("text stream: what may become a stop string is held back, and shown when it doesn't") {
    TextStream stream({"</end>", "\n\n"});
    CHECK(stream.push("text <") == "text ");
    CHECK(stream.push("/en") == "");
    CHECK(stream.push("emy>") == "</enemy>");
    CHECK(stream.push("line\n") == "line");
    CHECK(stream.push("next\n") == "\nnext");
    CHECK_FALSE(stream.stopped());
    CHECK(stream.push("\nafter") == "");
    CHECK(stream.stopped());
    CHECK(stream.push("more") == "");
    CHECK(stream.finish() == "");
}

TEST_CASE("text stream: held-back text comes out at the end") {
    TextStream stream({"STOP"});
    CHECK(stream.push("do not STO") == "do not ");
    CHECK(stream.finish() == "STO");
    CHECK_FALSE(stream.stopped());
}

TEST_CASE("text stream: the result doesn't depend on how the bytes are divided") {
    const std::vector<std::string> stop_sets[] = {
        {}, {"aab"}, {"aab", "ab"}, {"abab", "ba", ""}, {"\xC3\xA9\xC3\xA9"}, {"b\xE4\xB8\x96"}, {k_r + "a"}, {"aaaa"}};
    const std::string_view units[] = {"a",        "a",    "b",    "\xC3\xA9",        "\xE4\xB8\x96",
                                      "\xE4\xB8", "\xFF", "\x96", "\xF0\x9F\x99\x82"};
    std::mt19937 random(3);
    int stops_met = 0;
    for (int round = 0; round < 4000; ++round) {
        const auto &stops = stop_sets[random() % std::size(stop_sets)];
        std::string text;
        for (size_t i = 0, count = random() % 14; i < count; ++i) text += units[random() % std::size(units)];
        std::vector<size_t> cuts;
        for (size_t at = 0; at < text.size(); ++at) {
            if (random() % 2 == 0) cuts.push_back(at);
        }
        bool stopped = false;
        CHECK(all(stops, text, cuts, &stopped) == expected(stops, text));
        CHECK(stopped == (expected(stops, text) != utf8_replace_invalid(text)));
        stops_met += stopped;
    }
    CHECK(stops_met > 300);
}

TEST_CASE("text stream: nothing shown is ever taken back") {
    TextStream stream({"abcabd"});
    std::string out;
    for (char c : std::string_view("abcabcabcabd")) out += stream.push(std::string_view(&c, 1));
    CHECK(out == "abcabc");
    CHECK(stream.stopped());
}
