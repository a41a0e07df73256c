// Against literal expectations; tests/tokenizer/chat_templates.py compares with Jinja itself.
#include "llm/chat_template.h"

#include <doctest/doctest.h>

#include <vector>

#include "llm/tokenizer/tokenizer_test_file.h"

using namespace tenon;
using namespace tenon::llm;

namespace {

const std::vector<ChatMessage> k_user = {{"user", " Hi \n"}};
const std::vector<ChatMessage> k_talk = {
    {"system", "Be brief."}, {"user", "Hi"}, {"assistant", "Hello"}, {"user", "Bye"}};

std::string render(std::string_view source, const std::vector<ChatMessage> &messages, bool prompt = true) {
    auto chat = ChatTemplate::parse(source, "<s>");
    INFO(chat.status().message());
    REQUIRE(chat.ok());
    return chat->render(messages, prompt);
}

constexpr std::string_view k_plain =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + "
    "'\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

}  // namespace

TEST_CASE("chat: each message is a turn, and the answer's beginning follows if asked for") {
    CHECK(render(k_plain, k_user) == "<|im_start|>user\n Hi \n<|im_end|>\n<|im_start|>assistant\n");
    CHECK(render(k_plain, k_user, false) == "<|im_start|>user\n Hi \n<|im_end|>\n");
    CHECK(render(k_plain, k_talk) ==
          "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
          "<|im_start|>assistant\nHello<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n");
    CHECK(render(k_plain, {}) == "<|im_start|>assistant\n");
}

TEST_CASE("chat: the template's own system message, for conversations without one") {
    const std::string source =
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
        "'<|im_start|>system\nYou\\'re \\u00e9lite<|im_end|>\n' }}{% endif %}" +
        std::string(k_plain.substr(k_plain.find("{{")));
    CHECK(render(source, k_user, false) ==
          "<|im_start|>system\nYou're \u00e9lite<|im_end|>\n<|im_start|>user\n Hi \n<|im_end|>\n");
    CHECK(render(source, k_talk, false).starts_with("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user"));
    CHECK(render(source, {}, false) == "");

    const std::string set = "{% set system_message = 'Help.' %}" + std::string(k_plain);
    CHECK(render(set, k_user, false).starts_with("<|im_start|>system\nHelp.<|im_end|>\n"));
}

TEST_CASE("chat: what differs within the family is read from the template") {
    auto chat = ChatTemplate::parse("{{ bos_token }}" + std::string(k_plain), "<s>");
    REQUIRE(chat.ok());
    CHECK(chat->writes_bos());
    CHECK(chat->render(k_user, false) == "<s><|im_start|>user\n Hi \n<|im_end|>\n");

    const std::string_view trimming =
        "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] | trim + '<|im_end|>'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}";
    CHECK(render(trimming, k_user) == "<|im_start|>user\nHi<|im_end|><|im_start|>assistant\n<think>\n");

    const std::string_view as_text =
        "{# a comment with <|im_start|>x #}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
        "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
    CHECK(render(as_text, k_user) == "<|im_start|>user\n Hi \n<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("chat: other families are unsupported, and the message names the way out") {
    for (std::string_view source :
         {"{% for m in messages %}[INST] {{ m['content'] }} [/INST]{% endfor %}",
          "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '<|im_sep|>' + m['content'] + '<|im_end|>' }}{% "
          "endfor %}",
          "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}", "{{", "{% if", "{{ '", "{#", "{"}) {
        const auto chat = ChatTemplate::parse(source, "");
        REQUIRE_FALSE(chat.ok());
        CHECK(chat.status().code() == Code::unsupported);
        CHECK(chat.status().message().find("--raw") != std::string::npos);
    }
}

TEST_CASE("chat: from a file: none, one, or one of another family") {
    test::TokenizerFile file;
    auto none = ChatTemplate::from_gguf(*file.open());
    REQUIRE(none.ok());
    CHECK_FALSE(none->has_value());

    file.text("tokenizer.chat_template", "{{ bos_token }}" + std::string(k_plain));
    file.natural("tokenizer.ggml.bos_token_id", 'B');
    auto one = ChatTemplate::from_gguf(*file.open());
    REQUIRE(one.ok());
    REQUIRE(one->has_value());
    CHECK((*one)->render({}, false) == "B");

    file.text("tokenizer.chat_template", "[INST]");
    auto other = ChatTemplate::from_gguf(*file.open());
    REQUIRE_FALSE(other.ok());
    CHECK(other.status().message().find("tokenizer.chat_template") != std::string::npos);
}
