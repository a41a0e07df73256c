#include "llm/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "llm/gguf_text.h"

namespace tenon::llm {

namespace {

constexpr std::string_view k_tokens = "tokenizer.ggml.tokens";
constexpr std::string_view k_types = "tokenizer.ggml.token_type";

// Names by which models of the field end a turn, first match first.
constexpr std::string_view k_turn_ends[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",         "<|endoftext|>",      "<|end_of_text|>",
    "<EOT>",      "_<EOT>",     "[EOT]",   "<｜end▁of▁sentence｜>", "<end_of_utterance>",
};

// Names that end a generation wherever they appear. The last lines: a code model goes on to another file.
constexpr std::string_view k_generation_ends[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

uint64_t load(const char *bytes, size_t count) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    return word;
}

uint64_t mix(uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Multiply and fold, eight bytes at a time; the last bytes are read overlapping, so that no length needs a loop of its
// own. Tokens are short: this is most of the time in which a vocabulary is read.
uint64_t hash(std::string_view text) {
    constexpr uint64_t k1 = 0x9E3779B97F4A7C15u, k2 = 0xD1B54A32D192ED03u;
    const char *data = text.data();
    const size_t size = text.size();
    uint64_t state = size * k1 + k2;
    if (size >= 8) {
        for (size_t i = 0; i + 8 < size; i += 8) state = mix(state ^ load(data + i, 8), k1);
        return mix(state ^ load(data + size - 8, 8), k2);
    }
    if (size >= 4) return mix(state ^ (load(data, 4) | load(data + size - 4, 4) << 32), k2);
    if (size == 0) return state;
    const auto byte = [&](size_t i) { return static_cast<uint64_t>(static_cast<uint8_t>(data[i])); };
    return mix(state ^ (byte(0) | byte(size / 2) << 8 | byte(size - 1) << 16), k2);
}

}  // namespace

Status Vocabulary::error(std::string_view key, std::string_view what) const {
    return Status::invalid_argument(fmt::format("{}: {}: {}", escaped(file_->path().native(), 4096), key, what));
}

Result<Vocabulary> Vocabulary::from_gguf(std::shared_ptr<const Gguf> file) {
    Vocabulary vocabulary;
    vocabulary.file_ = std::move(file);
    TENON_TRY(vocabulary.read_tokens());
    TENON_TRY(vocabulary.read_types());
    TENON_TRY(vocabulary.index_texts());
    TENON_TRY(vocabulary.read_special_ids());
    return vocabulary;
}

Status Vocabulary::read_tokens() {
    TENON_ASSIGN(const auto texts, file_->get_strings(k_tokens));
    if (!texts) return error(k_tokens, "missing: the file has no vocabulary");
    if (texts->empty()) return error(k_tokens, "empty");
    if (texts->size() > static_cast<size_t>(INT32_MAX)) return error(k_tokens, "more tokens than ids");
    texts_ = *texts;
    return {};
}

Status Vocabulary::read_types() {
    TENON_ASSIGN(const auto types, file_->get_ints(k_types));
    types_.assign(texts_.size(), TokenType::normal);
    if (!types) return {};
    if (types->size() != texts_.size()) {
        return error(k_types, fmt::format("{} types for {} tokens", types->size(), texts_.size()));
    }
    for (size_t i = 0; i < types_.size(); ++i) {
        const int64_t type = (*types)[i];
        if (type < 0 || type > static_cast<int64_t>(TokenType::byte)) {
            return error(k_types, fmt::format("token {} has type {}, which the format doesn't define", i, type));
        }
        types_[i] = static_cast<TokenType>(type);
    }
    return {};
}

Status Vocabulary::index_texts() {
    slots_.assign(std::bit_ceil(texts_.size() * 2 + 1), 0);
    mask_ = slots_.size() - 1;
    for (size_t id = 0; id < texts_.size(); ++id) {
        if (texts_[id].empty()) continue;  // a hole in the vocabulary: no text leads to it
        const uint64_t key = hash(texts_[id]);
        uint64_t at = key & mask_;
        for (; slots_[at] != 0; at = (at + 1) & mask_) {
            const auto other = static_cast<size_t>(static_cast<uint32_t>(slots_[at]) - 1);
            if ((slots_[at] ^ key) >> 32 == 0 && texts_[other] == texts_[id]) {
                return error(k_tokens, fmt::format("tokens {} and {} have the same text", other, id));
            }
        }
        slots_[at] = (key >> 32 << 32) | (id + 1);
    }
    return {};
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
    if (text.empty()) return std::nullopt;
    const uint64_t key = hash(text);
    for (uint64_t at = key & mask_; slots_[at] != 0; at = (at + 1) & mask_) {
        const uint32_t id = static_cast<uint32_t>(slots_[at]) - 1;
        if ((slots_[at] ^ key) >> 32 == 0 && texts_[id] == text) return static_cast<int32_t>(id);
    }
    return std::nullopt;
}

Status Vocabulary::read_special_ids() {
    std::optional<int32_t> eom;
    const std::pair<std::string_view, std::optional<int32_t> *> wanted[] = {
        {"tokenizer.ggml.bos_token_id", &bos_},
        {"tokenizer.ggml.eos_token_id", &eos_},
        {"tokenizer.ggml.eot_token_id", &eot_},
        {"tokenizer.ggml.eom_token_id", &eom},
    };
    for (const auto &[key, id] : wanted) {
        TENON_ASSIGN(const auto value, file_->get_uint(key));
        if (!value) continue;
        if (*value >= texts_.size()) {
            return error(key, fmt::format("{}, but the vocabulary has {} tokens", *value, texts_.size()));
        }
        *id = static_cast<int32_t>(*value);
    }
    for (size_t i = 0; !eot_ && i < std::size(k_turn_ends); ++i) eot_ = find_mark(k_turn_ends[i]);
    collect_end_of_generation(eom);
    return {};
}

std::optional<int32_t> Vocabulary::find_mark(std::string_view name) const {
    const std::optional<int32_t> id = find(name);
    if (!id || type(*id) == TokenType::unused) return std::nullopt;
    if (type(*id) != TokenType::normal) return id;
    return name.starts_with("<|") || name.starts_with("<｜") ? id : std::nullopt;
}

void Vocabulary::collect_end_of_generation(std::optional<int32_t> eom) {
    const auto add = [&](std::optional<int32_t> id) {
        if (id) end_of_generation_.push_back(*id);
    };
    // In these two families <|end|> closes a channel within an answer.
    const bool calls = find("<|call|>") || find("<|calls|>");
    const bool end_is_inner = calls && (find("<|return|>") || find("<|flush|>"));
    for (std::string_view name : k_generation_ends) {
        const std::optional<int32_t> id = find_mark(name);
        if (!id || (end_is_inner && name == "<|end|>")) continue;
        add(id);
        // Some files call these tokens normal; as text they would never be found.
        types_[static_cast<size_t>(*id)] = TokenType::control;
    }
    if (!(end_is_inner && eot_ && text(*eot_) == "<|end|>")) add(eot_);
    add(eos_);
    add(eom);
    std::sort(end_of_generation_.begin(), end_of_generation_.end());
    end_of_generation_.erase(std::unique(end_of_generation_.begin(), end_of_generation_.end()),
                             end_of_generation_.end());
}

SpecialTokens::SpecialTokens(const Vocabulary &vocabulary, bool control) {
    for (int32_t id = 0; id < vocabulary.size(); ++id) {
        const TokenType type = vocabulary.type(id);
        const bool wanted =
            type == TokenType::user_defined || (control && (type == TokenType::control || type == TokenType::unknown));
        if (!wanted || vocabulary.text(id).empty()) continue;
        entries_.push_back({vocabulary.text(id), id});
        first_bytes_[static_cast<uint8_t>(vocabulary.text(id)[0])] = true;
    }
    std::sort(entries_.begin(), entries_.end(), [](const Entry &a, const Entry &b) { return a.text < b.text; });
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, size_t start) const {
    for (size_t begin = start; begin < text.size(); ++begin) {
        if (!first_bytes_[static_cast<uint8_t>(text[begin])]) continue;
        // The sorted entries as a trie: [low, high) are those that agree with the text so far.
        size_t low = 0, high = entries_.size(), depth = 0;
        Match best;
        while (begin + depth < text.size()) {
            const auto byte = static_cast<uint8_t>(text[begin + depth]);
            const auto key = [&](const Entry &entry) {
                return depth < entry.text.size() ? static_cast<int>(static_cast<uint8_t>(entry.text[depth])) : -1;
            };
            const auto at = [&](size_t index) { return entries_.begin() + static_cast<ptrdiff_t>(index); };
            const auto first = std::partition_point(at(low), at(high), [&](const Entry &e) { return key(e) < byte; });
            const auto last = std::partition_point(first, at(high), [&](const Entry &e) { return key(e) <= byte; });
            low = static_cast<size_t>(first - entries_.begin());
            high = static_cast<size_t>(last - entries_.begin());
            if (low == high) break;
            ++depth;
            if (entries_[low].text.size() == depth) best = {begin, depth, entries_[low].id};
        }
        if (best.id >= 0) return best;
    }
    return {};
}

}  // namespace tenon::llm
