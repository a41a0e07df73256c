// Byte-level BPE. Text is cut into words (pre_splitter.h); each word starts as one token a byte, and of all neighbours
// that the file lists as a merge the earliest in that list, the leftmost first, become one, until none is left.
// Vocabularies write each byte as a printable character (GPT-2's alphabet); that is undone here once for the 256 bytes,
// so that merging works with ids alone.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <new>

#include "llm/gguf_text.h"
#include "llm/tokenizer/pre_splitter.h"
#include "llm/tokenizer/tokenizer.h"
#include "llm/tokenizer/utf8.h"

namespace tenon::llm {

namespace {

constexpr size_t k_max_text_bytes = size_t{1} << 30;

/// GPT-2's alphabet: printable Latin-1 stands for itself, the other 68 bytes are U+0100 on, in order.
struct ByteAlphabet {
    std::array<uint16_t, 256> code_point{};
    std::array<int16_t, 0x144> byte{};  // by code point; -1: not in the alphabet

    constexpr ByteAlphabet() {
        byte.fill(-1);
        uint16_t next = 0x100;
        for (int b = 0; b < 256; ++b) {
            const bool printable = (b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD);
            code_point[static_cast<size_t>(b)] = printable ? static_cast<uint16_t>(b) : next++;
            byte[code_point[static_cast<size_t>(b)]] = static_cast<int16_t>(b);
        }
    }
};
constexpr ByteAlphabet k_alphabet;

void append_letter(uint8_t byte, std::string &out) {
    const uint16_t point = k_alphabet.code_point[byte];
    if (point < 0x80) {
        out += static_cast<char>(point);
    } else {
        out += static_cast<char>(0xC0 | point >> 6);
        out += static_cast<char>(0x80 | (point & 0x3F));
    }
}

/// Appends the bytes that `text` writes; false, with a part appended, if it isn't written in the alphabet.
bool append_bytes(std::string_view text, std::string &out) {
    for (size_t i = 0; i < text.size(); ++i) {
        uint32_t point = static_cast<uint8_t>(text[i]);
        if (point >= 0x80) {
            if (i + 1 == text.size() || point < 0xC2 || point > 0xDF) return false;
            point = (point & 0x1F) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3F);
        }
        if (point >= k_alphabet.byte.size() || k_alphabet.byte[point] < 0) return false;
        out += static_cast<char>(k_alphabet.byte[point]);
    }
    return true;
}

constexpr uint32_t k_no_rank = UINT32_MAX;

struct Merge {
    uint32_t rank = k_no_rank;  // place in the file's list
    int32_t result = -1;
};

/// From two neighbouring tokens to their merge. Open addressing over small slots, apart from the pairs themselves: most
/// neighbours don't merge and end at an empty slot, which should be near in a cache.
class MergeTable {
public:
    void reserve(size_t count) {
        pairs_.reserve(count);
        slots_.assign(std::bit_ceil(count * 2 + 2), 0);
        shift_ = 64 - std::countr_zero(slots_.size());
    }
    /// The next in the file's list; never more than were reserved. Of equal pairs the first counts.
    void add(int32_t left, int32_t right, int32_t result) {
        pairs_.push_back({left, right, result});
        uint32_t &slot = slots_[place(left, right)];
        if (slot == 0) slot = static_cast<uint32_t>(pairs_.size());
    }
    Merge find(int32_t left, int32_t right) const {
        const uint32_t slot = slots_[place(left, right)];
        return slot == 0 ? Merge{} : Merge{slot - 1, pairs_[slot - 1].result};
    }

private:
    struct Pair {
        int32_t left, right, result;
    };
    size_t place(int32_t left, int32_t right) const {
        const uint64_t key = static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
        const uint64_t half = key * 0x9E3779B97F4A7C15u;
        size_t at = (half ^ half >> 32) * 0x9E3779B97F4A7C15u >> shift_;
        for (; slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
            const Pair &pair = pairs_[slots_[at] - 1];
            if (pair.left == left && pair.right == right) break;
        }
        return at;
    }
    std::vector<Pair> pairs_;      // by rank
    std::vector<uint32_t> slots_;  // rank + 1; 0 is free
    int shift_ = 63;
};

/// Merges the tokens of one word. One object serves the words of a call, so that its memory is allocated once.
class Merger {
public:
    explicit Merger(const MergeTable &table) : table_(table) {}

    /// Replaces `word` by what is left when no merge applies any more.
    void merge(std::vector<int32_t> &word) {
        if (word.size() <= k_short) {
            merge_short(word);
        } else {
            merge_long(word);
        }
    }

private:
    // Up to here looking at every pair for each merge is faster than a heap.
    static constexpr size_t k_short = 32;

    void merge_short(std::vector<int32_t> &word) {
        std::array<Merge, k_short> next;  // what becomes of token i and its right neighbour
        size_t count = word.size();
        for (size_t i = 0; i + 1 < count; ++i) next[i] = table_.find(word[i], word[i + 1]);
        while (count > 1) {
            size_t best = 0;
            for (size_t i = 1; i + 1 < count; ++i) {
                if (next[i].rank < next[best].rank) best = i;
            }
            if (next[best].rank == k_no_rank) break;
            word[best] = next[best].result;
            --count;
            for (size_t i = best + 1; i < count; ++i) {
                word[i] = word[i + 1];
                next[i] = next[i + 1];
            }
            if (best > 0) next[best - 1] = table_.find(word[best - 1], word[best]);
            if (best + 1 < count) next[best] = table_.find(word[best], word[best + 1]);
        }
        word.resize(count);
    }

    struct Link {
        uint32_t before, after;  // k_end: none
    };
    struct Candidate {
        uint32_t rank, at;  // the left token's place
        int32_t left, right, result;
        /// For a heap whose top is the lowest rank, then the leftmost.
        bool operator<(const Candidate &other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
    };
    static constexpr uint32_t k_end = UINT32_MAX;

    void offer(const std::vector<int32_t> &word, uint32_t left, uint32_t right) {
        const Merge found = table_.find(word[left], word[right]);
        if (found.rank == k_no_rank) return;
        heap_.push_back({found.rank, left, word[left], word[right], found.result});
    }

    /// A heap of what could be merged over a linked list: n log n, however long the word. A candidate whose tokens have
    /// since been merged otherwise is found by their ids and skipped; a dead token's id is -1.
    void merge_long(std::vector<int32_t> &word) {
        const auto count = static_cast<uint32_t>(word.size());
        links_.resize(count);
        heap_.clear();
        for (uint32_t i = 0; i < count; ++i) links_[i] = {i == 0 ? k_end : i - 1, i + 1 == count ? k_end : i + 1};
        for (uint32_t i = 0; i + 1 < count; ++i) offer(word, i, i + 1);
        std::make_heap(heap_.begin(), heap_.end());
        while (!heap_.empty()) {
            std::pop_heap(heap_.begin(), heap_.end());
            const Candidate top = heap_.back();
            heap_.pop_back();
            const uint32_t left = top.at, right = links_[left].after;
            if (right == k_end || word[left] != top.left || word[right] != top.right) continue;
            word[left] = top.result;
            word[right] = -1;
            const uint32_t before = links_[left].before, after = links_[right].after;
            links_[left].after = after;
            links_[right].after = k_end;
            if (after != k_end) {
                links_[after].before = left;
                push(word, left, after);
            }
            if (before != k_end) push(word, before, left);
        }
        std::erase(word, -1);
    }

    void push(const std::vector<int32_t> &word, uint32_t left, uint32_t right) {
        const size_t size = heap_.size();
        offer(word, left, right);
        if (heap_.size() > size) std::push_heap(heap_.begin(), heap_.end());
    }

    const MergeTable &table_;
    std::vector<Link> links_;
    std::vector<Candidate> heap_;
};

class ByteBpe final : public Tokenizer {
public:
    explicit ByteBpe(Vocabulary vocabulary)
        : Tokenizer(std::move(vocabulary)), user_tokens_(vocabulary_, false), all_special_(vocabulary_, true) {}

    Status load();
    using Tokenizer::encode;
    Result<std::vector<int32_t>> encode(std::string_view text, EncodeOptions options) const override;
    void append_piece(int32_t id, std::string &out) const override;
    std::string_view missing_bytes() const override { return missing_bytes_; }

private:
    /// What one call of encode() works with.
    struct Job {
        std::vector<int32_t> &out;
        Merger merger;
        std::vector<int32_t> word;
        std::string letters;
    };

    Status load_merges();
    Status load_merge(std::string_view line, int32_t *result);
    void load_bytes();
    Status encode_text(std::string_view text, Job &job) const;
    void encode_word(std::string_view word, Job &job) const;
    bool encode_whole_word(std::string_view word, Job &job) const;

    SpecialTokens user_tokens_, all_special_;
    std::optional<PreSplitter> splitter_;
    bool whole_words_first_ = false;
    std::array<int32_t, 256> byte_tokens_{};  // -1: the vocabulary has none
    std::string missing_bytes_;
    MergeTable merges_;
};

Status ByteBpe::load() {
    constexpr std::string_view key = "tokenizer.ggml.pre";
    const Gguf &file = vocabulary_.file();
    TENON_ASSIGN(const auto name, file.get_string(key));
    Result<PreRule> rule = find_pre_rule(name.value_or("default"));
    if (!rule.ok()) return std::move(rule).status().in(fmt::format("{}: {}", escaped(file.path().native(), 4096), key));
    TENON_ASSIGN(splitter_, PreSplitter::create(*rule));
    whole_words_first_ = rule->whole_words_first;
    TENON_TRY(read_added_tokens(rule->add_bos));
    load_bytes();
    return load_merges();
}

void ByteBpe::load_bytes() {
    std::string letter;
    for (int byte = 0; byte < 256; ++byte) {
        letter.clear();
        append_letter(static_cast<uint8_t>(byte), letter);
        byte_tokens_[static_cast<size_t>(byte)] = vocabulary_.find(letter).value_or(-1);
        if (byte_tokens_[static_cast<size_t>(byte)] < 0) missing_bytes_ += static_cast<char>(byte);
    }
}

Status ByteBpe::load_merges() {
    constexpr std::string_view key = "tokenizer.ggml.merges";
    const Gguf &file = vocabulary_.file();
    TENON_ASSIGN(const auto lines, file.get_strings(key));
    const std::string where = fmt::format("{}: {}", escaped(file.path().native(), 4096), key);
    if (!lines) return Status::invalid_argument(where + ": missing: byte-level BPE can't do without");
    if (lines->size() >= k_no_rank) return Status::invalid_argument(where + ": too many merges");
    merges_.reserve(lines->size());
    int32_t result = -1;
    for (size_t i = 0; i < lines->size(); ++i) {
        Status status = load_merge((*lines)[i], &result);
        if (!status.ok()) return std::move(status).in(fmt::format("{}[{}]", where, i));
    }
    return {};
}

/// `result`: in, what the merge before made; out, what this one makes.
Status ByteBpe::load_merge(std::string_view line, int32_t *result) {
    // The alphabet has no space, so that the first one behind the first letter parts the two.
    const size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) {
        return Status::invalid_argument(fmt::format("'{}' isn't two tokens with a space between", escaped(line)));
    }
    const std::string_view left = line.substr(0, space), right = line.substr(space + 1);
    const auto left_id = vocabulary_.find(left), right_id = vocabulary_.find(right);
    const auto joins = [&](std::string_view text) {
        return text.size() == left.size() + right.size() && text.starts_with(left) && text.ends_with(right);
    };
    // Most vocabularies list what merges make in their order: the next token is a good guess, which saves a search.
    std::optional<int32_t> joined;
    if (vocabulary_.contains(*result + 1) && joins(vocabulary_.text(*result + 1))) {
        joined = *result + 1;
    } else {
        joined = vocabulary_.find(std::string(left) + std::string(right));
    }
    if (!left_id || !right_id || !joined) {
        const std::string name = !left_id    ? std::string(left)
                                 : !right_id ? std::string(right)
                                             : std::string(left) + std::string(right);
        return Status::invalid_argument(
            fmt::format("'{}': the vocabulary has no token '{}'", escaped(line), escaped(name)));
    }
    merges_.add(*left_id, *right_id, *joined);
    *result = *joined;
    return {};
}

void ByteBpe::append_piece(int32_t id, std::string &out) const {
    if (!vocabulary_.contains(id)) return;
    const std::string_view text = vocabulary_.text(id);
    switch (vocabulary_.type(id)) {
        case TokenType::normal:
        case TokenType::byte: {
            const size_t before = out.size();
            if (append_bytes(text, out)) return;
            out.resize(before);  // not written in the alphabet: it means what it says
            out += text;
            return;
        }
        case TokenType::control:
        case TokenType::unknown:
        case TokenType::user_defined: out += text; return;
        case TokenType::unused:
        case TokenType::undefined: return;
    }
}

Result<std::vector<int32_t>> ByteBpe::encode(std::string_view text, EncodeOptions options) const try {
    if (text.size() >= k_max_text_bytes) {
        return Status::invalid_argument(
            fmt::format("text of {} bytes; at most {} can be encoded at once", text.size(), k_max_text_bytes - 1));
    }
    std::vector<int32_t> out;
    out.reserve(text.size() / 3 + 2);
    Job job{out, Merger(merges_), {}, {}};
    if (options.add_special && adds_bos_) out.push_back(*bos());
    const SpecialTokens &special = options.parse_special ? all_special_ : user_tokens_;
    size_t done = 0;
    while (done < text.size()) {
        const SpecialTokens::Match match = special.find(text, done);
        if (match.id < 0) break;
        TENON_TRY(encode_text(text.substr(done, match.begin - done), job));
        out.push_back(match.id);
        done = match.begin + match.bytes;
    }
    TENON_TRY(encode_text(text.substr(done), job));
    if (options.add_special && adds_eos_) out.push_back(*eos());
    return out;
} catch (const std::bad_alloc &) {
    return Status::out_of_memory(fmt::format("no memory to encode {} bytes of text", text.size()));
}

/// Text without special tokens. A run of bytes that aren't UTF-8 is a word of its own.
Status ByteBpe::encode_text(std::string_view text, Job &job) const {
    const std::function<void(std::string_view)> word = [&](std::string_view w) { encode_word(w, job); };
    while (!text.empty()) {
        const size_t valid = utf8_valid_prefix(text);
        if (valid > 0) TENON_TRY(splitter_->split(text.substr(0, valid), word));
        text.remove_prefix(valid);
        size_t invalid = 0;
        while (invalid < text.size()) {
            const Utf8Head head = utf8_head(text.substr(invalid));
            if (head.kind == Utf8Head::character) break;
            invalid += head.bytes;
        }
        if (invalid > 0) word(text.substr(0, invalid));
        text.remove_prefix(invalid);
    }
    return {};
}

void ByteBpe::encode_word(std::string_view word, Job &job) const {
    if (whole_words_first_ && encode_whole_word(word, job)) return;
    job.word.clear();
    for (char byte : word) {
        const int32_t id = byte_tokens_[static_cast<uint8_t>(byte)];
        if (id >= 0) job.word.push_back(id);
    }
    job.merger.merge(job.word);
    job.out.insert(job.out.end(), job.word.begin(), job.word.end());
}

bool ByteBpe::encode_whole_word(std::string_view word, Job &job) const {
    if (word.size() > max_piece_bytes_) return false;
    job.letters.clear();
    for (char byte : word) append_letter(static_cast<uint8_t>(byte), job.letters);
    const auto id = vocabulary_.find(job.letters);
    // A control token's name is only found as such, never as a word.
    if (!id || vocabulary_.type(*id) != TokenType::normal) return false;
    job.out.push_back(*id);
    return true;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_byte_bpe(Vocabulary vocabulary) {
    auto tokenizer = std::make_shared<ByteBpe>(std::move(vocabulary));
    TENON_TRY(tokenizer->load());
    return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

}  // namespace tenon::llm
