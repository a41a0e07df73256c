#include "llm/tokenizer/tokenizer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "llm/tokenizer/tokenizer_test_file.h"

using namespace tenon;
using namespace tenon::llm;
using test::TokenizerFile;

namespace {

using Ids = std::vector<int32_t>;

std::shared_ptr<const Tokenizer> make(const TokenizerFile &file) {
    auto tokenizer = Tokenizer::from_gguf(file.open());
    INFO(tokenizer.status().message());
    REQUIRE(tokenizer.ok());
    return *tokenizer;
}

Ids encode(const Tokenizer &tokenizer, std::string_view text, EncodeOptions options = {}) {
    auto ids = tokenizer.encode(text, options);
    REQUIRE(ids.ok());
    return *ids;
}

void check_refused(const Result<std::shared_ptr<const Tokenizer>> &result, Code code, std::string_view part) {
    REQUIRE_FALSE(result.ok());
    INFO(result.status().message());
    CHECK(result.status().code() == code);
    CHECK(result.status().message().find(part) != std::string::npos);
    CHECK(result.status().message().find(".gguf") != std::string::npos);
}

/// What merging means, done the slow way: the earliest merge of the list, leftmost first, until none is left.
std::vector<std::string> merged(std::vector<std::string> word, const std::vector<std::string> &merges) {
    for (;;) {
        size_t best = merges.size(), at = 0;
        for (size_t i = 0; i + 1 < word.size(); ++i) {
            for (size_t m = 0; m < best; ++m) {
                if (merges[m] == word[i] + " " + word[i + 1]) best = m, at = i;
            }
        }
        if (best == merges.size()) return word;
        word[at] += word[at + 1];
        word.erase(word.begin() + static_cast<ptrdiff_t>(at) + 1);
    }
}

}  // namespace

TEST_CASE("byte BPE: merges apply by their place in the list, then leftmost") {
    TokenizerFile file;
    const int32_t bc = file.merge("b", "c"), ab = file.merge("a", "b"), abc = file.merge("a", "bc");
    auto tokenizer = make(file);
    CHECK(encode(*tokenizer, "abc") == Ids{abc});
    CHECK(encode(*tokenizer, "abab") == Ids{ab, ab});
    CHECK(encode(*tokenizer, "abbc") == Ids{ab, bc});
    CHECK(encode(*tokenizer, "") == Ids{});
}

TEST_CASE("byte BPE: words of any length are merged as by the definition") {
    TokenizerFile file;
    std::mt19937 random(7);
    std::vector<std::string> parts = {"a", "b", "c"};
    while (file.merges.size() < 40) {
        const std::string left = parts[random() % parts.size()], right = parts[random() % parts.size()];
        if (std::count(file.tokens.begin(), file.tokens.end(), left + right) > 0) continue;
        file.merge(left, right);
        parts.push_back(left + right);
    }
    auto tokenizer = make(file);
    for (int round = 0; round < 400; ++round) {
        std::vector<std::string> word;
        for (size_t i = 0, length = 1 + random() % 150; i < length; ++i) word.push_back(parts[random() % 3]);
        std::string text;
        for (const std::string &one : word) text += one;
        std::vector<std::string> pieces;
        for (int32_t id : encode(*tokenizer, text)) pieces.push_back(tokenizer->piece(id));
        CHECK(pieces == merged(word, file.merges));
    }
}

TEST_CASE("byte BPE: a word of a million letters is no problem") {
    TokenizerFile file;
    std::string left = "a";
    for (int i = 0; i < 6; ++i, left += left) file.merge(left, left);
    auto tokenizer = make(file);
    CHECK(encode(*tokenizer, std::string(1 << 20, 'a')).size() == (1 << 20) / 64);
    CHECK(encode(*tokenizer, std::string(1 << 20, 'z')).size() == 1 << 20);
}

TEST_CASE("byte BPE: any bytes come back, UTF-8 or not") {
    TokenizerFile file;
    file.merge("\xC4\xA0", "a");  // a space and an a
    for (const char *rule : {"gpt-2", "smollm", "llama-bpe", "qwen2", "default"}) {
        file.text("tokenizer.ggml.pre", rule);
        auto tokenizer = make(file);
        CHECK(tokenizer->missing_bytes().empty());
        std::mt19937 random(11);
        std::vector<std::string> texts = {std::string(3, '\0'), "\xC3", "a\xE4\xB8", "\xED\xA0\x80",
                                          "\xFF a \xFE\x80 a"};
        for (int round = 0; round < 300; ++round) {
            std::string &text = texts.emplace_back();
            const bool ascii = round % 3 == 0;
            for (size_t i = 0, length = random() % 200; i < length; ++i) {
                text += static_cast<char>(random() % (ascii ? 128 : 256));
            }
        }
        for (const std::string &text : texts) {
            auto back = tokenizer->decode(encode(*tokenizer, text));
            REQUIRE(back.ok());
            CHECK(*back == text);
        }
    }
}

TEST_CASE("byte BPE: a byte without a token is left out and told of") {
    TokenizerFile file;
    file.tokens[4] = "[hole]";
    auto tokenizer = make(file);
    CHECK(tokenizer->missing_bytes() == "\x04");
    CHECK(encode(*tokenizer, "!\x04!") == Ids{'!', '!'});
}

TEST_CASE("special tokens: found by their whole names, the longest first, control ones only if asked for") {
    TokenizerFile file;
    const int32_t mark = file.add("<|x|>", 3), longer = file.add("<|x|>>", 3), user = file.add("<tab>", 4);
    auto tokenizer = make(file);
    CHECK(encode(*tokenizer, "a<|x|>b") == Ids{'a', mark, 'b'});
    CHECK(encode(*tokenizer, "<|x|>>") == Ids{longer});
    CHECK(encode(*tokenizer, "<|x|<|x|><tab") == Ids{'<', '|', 'x', '|', mark, '<', 't', 'a', 'b'});
    CHECK(encode(*tokenizer, "<|x|><tab>", {.parse_special = false}) == Ids{'<', '|', 'x', '|', '>', user});
    CHECK(*tokenizer->decode(Ids{mark, 'a', user}) == "<|x|>a<tab>");
    CHECK(tokenizer->is_control(mark));
    CHECK_FALSE(tokenizer->is_control(user));
    CHECK_FALSE(tokenizer->is_control(-1));
}

TEST_CASE("BOS and EOS: only where the file or its rule says so") {
    TokenizerFile file;
    const int32_t bos = file.add("<s>", 3), eos = file.add("<e>", 3);
    file.natural("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(bos));
    file.natural("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
    CHECK(encode(*make(file), "a") == Ids{'a'});
    file.text("tokenizer.ggml.pre", "llama-bpe");
    CHECK(encode(*make(file), "a") == Ids{bos, 'a'});
    file.boolean("tokenizer.ggml.add_bos_token", false);
    file.boolean("tokenizer.ggml.add_eos_token", true);
    auto tokenizer = make(file);
    CHECK(encode(*tokenizer, "a") == Ids{'a', eos});
    CHECK(encode(*tokenizer, "") == Ids{eos});
    CHECK(encode(*tokenizer, "a", {.add_special = false}) == Ids{'a'});
    CHECK(tokenizer->bos() == bos);
    CHECK(tokenizer->eos() == eos);
}

TEST_CASE("end of generation: the file's ids and the well-known names, whatever type they were given") {
    TokenizerFile file;
    const int32_t end = file.add("<|im_end|>", 1), text = file.add("<|endoftext|>", 3), eos = file.add("<e>", 3);
    const int32_t html = file.add("</s>", 1);
    file.natural("tokenizer.ggml.eos_token_id", static_cast<uint32_t>(eos));
    auto tokenizer = make(file);
    for (int32_t id : {end, text, eos}) CHECK(tokenizer->is_end_of_generation(id));
    for (int32_t id : {html, 'a' + 0, -1}) CHECK_FALSE(tokenizer->is_end_of_generation(id));
    CHECK(tokenizer->eot() == end);
    CHECK(encode(*tokenizer, "<|im_end|>") == Ids{end});
}

TEST_CASE("end of generation: <|end|> is none where channels are closed with it") {
    TokenizerFile file;
    const int32_t end = file.add("<|end|>", 3);
    CHECK(make(file)->is_end_of_generation(end));
    file.add("<|return|>", 3);
    file.add("<|call|>", 3);
    CHECK_FALSE(make(file)->is_end_of_generation(end));
}

TEST_CASE("whole words first: a word in the vocabulary is that token although no merge leads there") {
    TokenizerFile file;
    const int32_t word = file.add("\xC4\xA0word");
    file.add("mark", 3);
    CHECK(encode(*make(file), " word").size() == 5);
    file.text("tokenizer.ggml.pre", "llama-bpe");
    auto tokenizer = make(file);
    CHECK(encode(*tokenizer, " word") == Ids{word});
    CHECK(encode(*tokenizer, "mark", {.parse_special = false}).size() == 4);
}

TEST_CASE("pieces: texts outside the alphabet mean what they say, unused tokens nothing") {
    TokenizerFile file;
    const int32_t raw = file.add("\xE4\xB8\x96 x"), unused = file.add("[PAD]", 5);
    auto tokenizer = make(file);
    CHECK(tokenizer->piece(raw) == "\xE4\xB8\x96 x");
    CHECK(tokenizer->piece(unused) == "");
    CHECK(tokenizer->piece(-1) == "");
    CHECK(tokenizer->piece(0) == std::string(1, '\0'));
    std::string out;
    out.reserve(tokenizer->max_piece_bytes() * static_cast<size_t>(tokenizer->vocabulary_size()));
    const char *before = out.data();
    for (int32_t id = 0; id < tokenizer->vocabulary_size(); ++id) tokenizer->append_piece(id, out);
    CHECK(out.data() == before);
    auto outside = tokenizer->decode(Ids{tokenizer->vocabulary_size()});
    REQUIRE_FALSE(outside.ok());
    CHECK(outside.status().code() == Code::invalid_argument);
}

TEST_CASE("encoding: several threads at once get the same tokens") {
    TokenizerFile file;
    file.merge("a", "b");
    auto tokenizer = make(file);
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "ab c" + std::to_string(i);
    const Ids expected = encode(*tokenizer, text);
    std::vector<Ids> got(4);
    std::vector<std::thread> threads;
    for (Ids &ids : got) threads.emplace_back([&] { ids = *tokenizer->encode(text); });
    for (std::thread &thread : threads) thread.join();
    for (const Ids &ids : got) CHECK(ids == expected);
}

TEST_CASE("files: what is missing or doesn't fit is refused by the key's name") {
    const TokenizerFile file;
    const auto refused = [&](Code code, std::string_view part, auto &&change) {
        check_refused(Tokenizer::from_gguf(file.open(change)), code, part);
    };
    using All = std::map<std::string, std::string>;
    refused(Code::invalid_argument, "tokenizer.ggml.model: missing",
            [](All &all) { all.erase("tokenizer.ggml.model"); });
    refused(Code::invalid_argument, "tokenizer.ggml.tokens: missing",
            [](All &all) { all.erase("tokenizer.ggml.tokens"); });
    refused(Code::invalid_argument, "tokenizer.ggml.merges: missing",
            [](All &all) { all.erase("tokenizer.ggml.merges"); });
    refused(Code::invalid_argument, "tokenizer.ggml.tokens",
            [](All &all) { all["tokenizer.ggml.tokens"] = TokenizerFile::strings({}); });
    refused(Code::invalid_argument, "tokenizer.ggml.tokens",
            [](All &all) { all["tokenizer.ggml.tokens"] = TokenizerFile::integers({1}); });
    refused(Code::invalid_argument, "token_type: 3 types for 256 tokens", [](All &all) {
        all["tokenizer.ggml.token_type"] = TokenizerFile::integers({1, 1, 1});
    });
    for (const char *merge : {"ab", "a ", " a", "", " ", "a zz", "zz a", "a b"}) {
        refused(Code::invalid_argument, "tokenizer.ggml.merges[0]",
                [&](All &all) { all["tokenizer.ggml.merges"] = TokenizerFile::strings({merge}); });
    }
}

TEST_CASE("files: wrong ids, types and texts") {
    for (const char *key : {"bos", "eos", "eot", "eom"}) {
        TokenizerFile file;
        const std::string name = std::string("tokenizer.ggml.") + key + "_token_id";
        file.natural(name, 256);
        check_refused(Tokenizer::from_gguf(file.open()), Code::invalid_argument, name + ": 256");
        file.natural(name, UINT32_MAX);
        check_refused(Tokenizer::from_gguf(file.open()), Code::invalid_argument, name);
    }
    TokenizerFile twice;
    twice.add("A");
    check_refused(Tokenizer::from_gguf(twice.open()), Code::invalid_argument, "tokens 65 and 256 have the same text");
    TokenizerFile type;
    type.add("x y", 7);
    check_refused(Tokenizer::from_gguf(type.open()), Code::invalid_argument, "token 256 has type 7");
    TokenizerFile bos;
    bos.boolean("tokenizer.ggml.add_bos_token", true);
    check_refused(Tokenizer::from_gguf(bos.open()), Code::invalid_argument, "tokenizer.ggml.bos_token_id is missing");
}

TEST_CASE("files: other tokenizer models and rules are unsupported by name, holes in the vocabulary are not") {
    TokenizerFile file;
    file.text("tokenizer.ggml.model", "llama");
    check_refused(Tokenizer::from_gguf(file.open()), Code::unsupported, "'llama'");
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "unheard-of");
    check_refused(Tokenizer::from_gguf(file.open()), Code::unsupported, "tokenizer.ggml.pre");
    file.values.erase("tokenizer.ggml.pre");
    file.add("");
    file.add("");
    CHECK(encode(*make(file), "12345") == Ids{'1', '2', '3', '4', '5'});
    auto without_types = Tokenizer::from_gguf(file.open([](auto &all) { all.erase("tokenizer.ggml.token_type"); }));
    CHECK(without_types.ok());
}

TEST_CASE("files: any vocabulary is refused with a message or works within its bounds") {
    std::mt19937 random(23);
    const auto bytes = [&](size_t most) {
        std::string out;
        for (size_t i = random() % (most + 1); i > 0; --i)
            out += static_cast<char>(random() % 3 == 0 ? random() : 'a' + random() % 4);
        return out;
    };
    int accepted = 0;
    for (int round = 0; round < 400; ++round) {
        TokenizerFile file;
        if (round % 2 == 0) file.tokens.clear(), file.types.clear();
        for (size_t i = random() % 40; i > 0; --i)
            file.add(bytes(4) + std::to_string(i), static_cast<int32_t>(random() % 7));
        for (size_t i = random() % 20; i > 0 && !file.tokens.empty(); --i) {
            const auto pick = [&] { return file.tokens[random() % file.tokens.size()]; };
            if (random() % 16 == 0) {
                file.merges.push_back(bytes(6));
            } else if (const std::string left = pick(), right = pick();
                       std::count(file.tokens.begin(), file.tokens.end(), left + right) == 0) {
                file.merge(left, right);
            }
        }
        file.text("tokenizer.ggml.pre", round % 3 == 0 ? "llama-bpe" : "smollm");
        const auto tokenizer = Tokenizer::from_gguf(file.open());
        if (!tokenizer.ok()) {
            CHECK(tokenizer.status().message().find("tokenizer.ggml.") != std::string::npos);
            continue;
        }
        ++accepted;
        for (int text = 0; text < 5; ++text) {
            for (int32_t id : encode(**tokenizer, bytes(300))) {
                CHECK((*tokenizer)->vocabulary().contains(id));
                CHECK((*tokenizer)->piece(id).size() <= (*tokenizer)->max_piece_bytes());
            }
        }
    }
    CHECK(accepted > 40);
}
