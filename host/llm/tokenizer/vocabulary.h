// The tokens of a GGUF file: their texts as they lie in the mapped file, their kinds, a table from text to id, and the
// ids with a meaning (BOS, EOS, end of turn). Common to all tokenizer models.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "llm/gguf.h"
#include "tenon/status.h"

namespace tenon::llm {

/// `tokenizer.ggml.token_type`, the numbers of the format.
enum class TokenType : uint8_t {
    undefined = 0,
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
};

/// Immutable; any thread. Texts live as long as the file.
class Vocabulary {
public:
    /// Errors name the file and the key that is missing, has the wrong type or length, or doesn't fit the others: no
    /// tokens, two tokens with the same text, an id outside the vocabulary.
    static Result<Vocabulary> from_gguf(std::shared_ptr<const Gguf> file);

    int32_t size() const { return static_cast<int32_t>(texts_.size()); }
    bool contains(int32_t id) const { return id >= 0 && id < size(); }
    /// `id` must be in the vocabulary. The text as the file has it: how bytes are written in it is the model's affair.
    std::string_view text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
    TokenType type(int32_t id) const { return types_[static_cast<size_t>(id)]; }
    /// The id of the token with exactly this text.
    std::optional<int32_t> find(std::string_view text) const;

    std::optional<int32_t> bos() const { return bos_; }
    std::optional<int32_t> eos() const { return eos_; }
    /// End of turn: from the file, else by a well-known name such as <|im_end|> or <|eot_id|>.
    std::optional<int32_t> eot() const { return eot_; }
    /// EOS, end of turn, end of message, and the control tokens that are known to end a generation by their names,
    /// since many files name only one of theirs. Sorted.
    std::span<const int32_t> end_of_generation() const { return end_of_generation_; }

    const Gguf &file() const { return *file_; }

private:
    Status read_tokens();
    Status read_types();
    Status index_texts();
    Status read_special_ids();
    /// A token with a well-known name. One of type normal counts only if its name is no text that anyone writes: "</s>"
    /// may be a piece of HTML, "<|im_end|>" is a mark that the file forgot to call one.
    std::optional<int32_t> find_mark(std::string_view name) const;
    void collect_end_of_generation(std::optional<int32_t> eom);
    Status error(std::string_view key, std::string_view what) const;

    std::shared_ptr<const Gguf> file_;
    std::span<const std::string_view> texts_;
    std::vector<TokenType> types_;
    std::vector<uint64_t> slots_;  // open addressing: the hash's upper half, then id + 1; 0 is free
    uint64_t mask_ = 0;
    std::optional<int32_t> bos_, eos_, eot_;
    std::vector<int32_t> end_of_generation_;
};

/// Finds tokens that stand in text by their whole names, such as <|im_start|>: the leftmost, and of those that begin at
/// one place the longest. Immutable; any thread.
class SpecialTokens {
public:
    struct Match {
        size_t begin = 0, bytes = 0;
        int32_t id = -1;  // negative: none
    };

    /// Recognises user-defined tokens, and, if `control`, control and unknown tokens as well.
    SpecialTokens(const Vocabulary &vocabulary, bool control);
    /// The first match at or behind `start`; with a negative id if there is none.
    Match find(std::string_view text, size_t start) const;

private:
    struct Entry {
        std::string_view text;
        int32_t id;
    };
    std::vector<Entry> entries_;  // sorted by text: those with a common beginning lie together, the shortest first
    bool first_bytes_[256] = {};
};

}  // namespace tenon::llm
