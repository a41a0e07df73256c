// Conversations as the text that an instruct model was trained on. GGUF files carry their format as a Jinja program
// (`tokenizer.chat_template`); Tenon doesn't run Jinja, but recognises the ChatML family by what its programs print:
//
//   <|im_start|>ROLE\nCONTENT<|im_end|>\n      for each message
//   <|im_start|>assistant\n                    for the answer
//
// What differs within the family is read from the program: a system message for conversations without one, a BOS in
// front, trimmed contents, the line end behind a message, how the answer begins.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "llm/gguf.h"
#include "tenon/status.h"

namespace tenon::llm {

struct ChatMessage {
    std::string role;  // "system", "user" or "assistant"
    std::string content;
};

/// A recognised template. Immutable; any thread.
class ChatTemplate {
public:
    /// The file's template; nothing where the file has none (a base model). unsupported, with the file, the key and the
    /// way out (--raw), for a template of another family.
    static Result<std::optional<ChatTemplate>> from_gguf(const Gguf &file);

    /// A template's text; `bos` is what it prints for `bos_token`. unsupported if it isn't of the ChatML family.
    static Result<ChatTemplate> parse(std::string_view source, std::string_view bos);

    /// The conversation as the template prints it. With `add_generation_prompt` the answer's beginning follows.
    std::string render(std::span<const ChatMessage> messages, bool add_generation_prompt) const;

    /// Whether rendered text begins with the BOS token's name, so that encoding it must not add another.
    bool writes_bos() const { return !bos_.empty(); }

private:
    ChatTemplate() = default;

    std::string bos_;             // printed first; empty: none
    std::string default_system_;  // content of the system message of conversations that don't begin with one
    bool has_default_system_ = false;
    bool trims_ = false;             // contents lose white space at both ends
    std::string message_end_;        // "<|im_end|>\n"
    std::string generation_prompt_;  // "<|im_start|>assistant\n"
};

}  // namespace tenon::llm
