// Text to token ids and back, by the vocabulary of a GGUF file. What is common to all tokenizer models is here; each
// model (`tokenizer.ggml.model`) is one implementation in a file of its own, with a row in tokenizer.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "llm/gguf.h"
#include "llm/tokenizer/vocabulary.h"
#include "tenon/status.h"

namespace tenon::llm {

struct EncodeOptions {
    /// Add BOS and EOS where the file says so (`tokenizer.ggml.add_bos_token`, `.add_eos_token`; a missing key means
    /// no, save for splitting rules whose models all begin with a BOS, such as llama-bpe).
    bool add_special = true;
    /// Recognise control tokens written in the text, such as <|im_start|>. User-defined tokens always are.
    bool parse_special = true;
};

/// Immutable; any thread. Keeps the file open.
class Tokenizer {
public:
    /// The tokenizer that the file names. Errors name the file and the key; unsupported names the model or the
    /// splitting rule that Tenon doesn't have.
    static Result<std::shared_ptr<const Tokenizer>> from_gguf(std::shared_ptr<const Gguf> file);
    virtual ~Tokenizer() = default;
    Tokenizer(const Tokenizer &) = delete;
    Tokenizer &operator=(const Tokenizer &) = delete;

    /// The tokens of `text`, which may be any bytes: what isn't UTF-8 is encoded byte by byte, like the rest. For
    /// vocabularies that have all 256 bytes (see missing_bytes) decode() gives the same bytes back; other bytes have no
    /// token and are left out. invalid_argument for text of 1 GiB or more.
    virtual Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options) const = 0;
    Result<std::vector<int32_t>> encode(std::string_view text) const { return encode(text, EncodeOptions{}); }

    /// Appends the bytes that token `id` stands for: part of a character at times, the name of a control token, nothing
    /// for an unused token or an id outside the vocabulary. Allocates only if `out` lacks the capacity;
    /// max_piece_bytes() always do.
    virtual void append_piece(int32_t id, std::string &out) const = 0;
    std::string piece(int32_t id) const;
    /// The bytes of all `ids`, joined. invalid_argument for an id outside the vocabulary.
    Result<std::string> decode(std::span<const int32_t> ids) const;
    size_t max_piece_bytes() const { return max_piece_bytes_; }

    /// The byte values that no token can express, ascending: text that has them can't be encoded without loss.
    virtual std::string_view missing_bytes() const = 0;

    const Vocabulary &vocabulary() const { return vocabulary_; }
    int32_t vocabulary_size() const { return vocabulary_.size(); }
    std::optional<int32_t> bos() const { return vocabulary_.bos(); }
    std::optional<int32_t> eos() const { return vocabulary_.eos(); }
    std::optional<int32_t> eot() const { return vocabulary_.eot(); }
    /// Whether encode() adds a BOS before, an EOS behind the text.
    bool adds_bos() const { return adds_bos_; }
    bool adds_eos() const { return adds_eos_; }
    /// Whether a model that answers this token has finished.
    bool is_end_of_generation(int32_t id) const;
    /// Whether the token is a mark (turns, padding, ...) rather than text.
    bool is_control(int32_t id) const;

protected:
    explicit Tokenizer(Vocabulary vocabulary);
    /// Reads whether BOS and EOS are added; invalid_argument if one is asked for that the file doesn't have.
    Status read_added_tokens(bool add_bos_by_default);

    Vocabulary vocabulary_;
    size_t max_piece_bytes_ = 0;
    bool adds_bos_ = false, adds_eos_ = false;
};

/// Byte-level BPE (`gpt2`): Sennrich et al. 2016, arXiv:1508.07909, over bytes as in GPT-2 (Radford et al. 2019).
Result<std::shared_ptr<const Tokenizer>> make_byte_bpe(Vocabulary vocabulary);

}  // namespace tenon::llm
