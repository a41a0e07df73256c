#include "llm/tokenizer/pre_splitter.h"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

using namespace tenon;
using namespace tenon::llm;

namespace {

/// The words of `text`, each followed by a bar.
std::string words(std::string_view rule_name, std::string_view text) {
    auto rule = find_pre_rule(rule_name);
    REQUIRE(rule.ok());
    auto splitter = PreSplitter::create(*rule);
    REQUIRE(splitter.ok());
    std::string out;
    const Status status = splitter->split(text, [&](std::string_view word) { out += std::string(word) + "|"; });
    CHECK(status.ok());
    return out;
}

}  // namespace

TEST_CASE("splitting: the space before a word belongs to it, the last of several too") {
    for (const char *rule : {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"}) {
        CHECK(words(rule, "Hello  big world") == "Hello| | big| world|");
        CHECK(words(rule, "a   ") == "a|   |");
        CHECK(words(rule, "") == "");
    }
}

TEST_CASE("splitting: numbers, as each rule has them") {
    CHECK(words("gpt-2", "in 12345") == "in| 12345|");
    CHECK(words("smollm", "in 12345") == "in| |1|2|3|4|5|");
    CHECK(words("llama-bpe", "in 12345") == "in| |123|45|");
    CHECK(words("qwen2", "in 12345") == "in| |1|2|3|4|5|");
    CHECK(words("default", "in 12345") == "in| |123|45|");
}

TEST_CASE("splitting: contractions, in any case where the rule says so") {
    CHECK(words("gpt-2", "it's IT'S") == "it|'s| IT|'|S|");
    CHECK(words("llama-bpe", "it's IT'S") == "it|'s| IT|'S|");
}

TEST_CASE("splitting: line ends and punctuation") {
    CHECK(words("llama-bpe", "a.\n\n b") == "a|.\n\n| b|");
    CHECK(words("gpt-2", "a.\n\n b") == "a|.|\n\n| b|");
    CHECK(words("default", "x<=>y++") == "x|<=>|y|++|");
}

TEST_CASE("splitting: white space is Unicode's, and letters and numbers newer than PCRE2's tables are known") {
    CHECK(words("gpt-2", "a\u3000b") == "a|\u3000|b|");
    CHECK(words("gpt-2", "a\u180Eb") == "a|\u180E|b|");        // no white space since Unicode 6.3
    CHECK(words("gpt-2", " \u180E") == " \u180E|");            // so a space may go before it
    CHECK(words("gpt-2", "a\U00031350b") == "a\U00031350b|");  // letter of Unicode 15
    CHECK(words("gpt-2", "1\U00010D402") == "1\U00010D402|");  // number of Unicode 16
    CHECK(words("default", ".\u1B4E.") == ".\u1B4E.|");        // punctuation of Unicode 16
}

TEST_CASE("splitting: names of models that cut alike lead to the rule, unknown ones to a list") {
    CHECK(words("starcoder", "42") == "4|2|");
    CHECK(words("llama3", "1234") == "123|4|");
    auto unknown = find_pre_rule("no-such-rule");
    REQUIRE_FALSE(unknown.ok());
    CHECK(unknown.status().code() == Code::unsupported);
    CHECK(unknown.status().message().find("'no-such-rule'") != std::string::npos);
    CHECK(unknown.status().message().find("smollm") != std::string::npos);
}

TEST_CASE("splitting: time grows with the text, not with its square") {
    for (const char *rule_name : {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"}) {
        auto splitter = PreSplitter::create(*find_pre_rule(rule_name));
        REQUIRE(splitter.ok());
        for (std::string_view unit : {" ", "a", "\n", "7", "!", "\xC3\xA9", "\xE3\x80\x80", " \n", "'"}) {
            std::string text;
            while (text.size() < 1 << 20) text += unit;
            text += "x";
            const auto start = std::chrono::steady_clock::now();
            size_t bytes = 0;
            CHECK(splitter->split(text, [&](std::string_view word) { bytes += word.size(); }).ok());
            CHECK(bytes == text.size());
            // The square of a million would take an hour.
            CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
        }
    }
}
