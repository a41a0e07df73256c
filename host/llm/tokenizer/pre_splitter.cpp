#include "llm/tokenizer/pre_splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <utility>

#include "llm/gguf_text.h"
#include "llm/tokenizer/unicode_additions.h"

namespace tenon::llm {

namespace {

// The insides of character classes.
#define SPACES "\\t-\\r\\x{85}\\p{Z}"
#define LETTERS "\\p{L}" TENON_MORE_LETTERS
#define NUMBERS "\\p{N}" TENON_MORE_NUMBERS
#define PUNCTUATION "\\p{P}" TENON_MORE_PUNCTUATION

// White space before a word loses its last character to the word.
#define TRAILING_SPACES "[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+"

constexpr std::string_view k_gpt2 =
    "'s|'t|'re|'ve|'m|'ll|'d| ?[" LETTERS "]+| ?[" NUMBERS "]+| ?[^" SPACES LETTERS NUMBERS "]+|" TRAILING_SPACES;

// Contractions in any case, line ends apart, and at most so many numbers in a word as the name says.
#define CL100K(numbers)                                                                                                \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n" LETTERS NUMBERS "]?[" LETTERS "]+|" numbers "| ?[^" SPACES LETTERS NUMBERS \
    "]+[\\r\\n]*|[" SPACES "]*[\\r\\n]+|" TRAILING_SPACES

constexpr std::string_view k_three_numbers = CL100K("[" NUMBERS "]{1,3}");
constexpr std::string_view k_one_number = CL100K("[" NUMBERS "]");
constexpr std::string_view k_single_digits = "[" NUMBERS TENON_MORE_DIGITS "]";
constexpr std::string_view k_punctuation = "[" PUNCTUATION "$+<=>^~|]+";
constexpr std::string_view k_numbers = "[" NUMBERS "]+";
constexpr std::string_view k_three_ascii_digits = "[0-9][0-9][0-9]";

struct Names {
    std::string_view rule;  // the name that the rule goes by
    std::vector<std::string_view> others;
};

const std::vector<PreRule> &rules() {
    static const std::vector<PreRule> all = {
        {"default", {k_punctuation, k_gpt2, k_numbers, k_three_ascii_digits}},
        {"gpt-2", {k_gpt2}},
        {"smollm", {k_single_digits, k_gpt2}},
        {"llama-bpe", {k_three_numbers}, true, true},
        {"dbrx", {k_three_numbers}},
        {"qwen2", {k_one_number}},
    };
    return all;
}

// Models that were given a name of their own, although they cut as another.
const std::vector<Names> &other_names() {
    static const std::vector<Names> all = {
        {"gpt-2", {"phi-2", "olmo", "mpt", "jais", "trillion", "exaone4", "gigachat", "mellum", "modern-bert"}},
        {"smollm", {"starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"}},
        {"llama-bpe", {"llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"}},
        {"dbrx", {"smaug-bpe"}},
        {"qwen2", {"stablelm2", "deepseek-r1-qwen", "megrez", "hunyuan", "solar-open", "grok-2"}},
    };
    return all;
}

Status pcre2_failure(std::string_view what, int error) {
    std::array<PCRE2_UCHAR, 256> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    const std::string message = fmt::format("{}: PCRE2 says: {}", what, reinterpret_cast<const char *>(text.data()));
    return {error == PCRE2_ERROR_NOMEMORY ? Code::out_of_memory : Code::internal, message};
}

template <auto free>
struct Free {
    template <class T>
    void operator()(T *object) const {
        free(object);
    }
};

using CodePointer = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchDataPointer = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContextPointer = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;

}  // namespace

Result<PreRule> find_pre_rule(std::string_view name) {
    std::string_view wanted = name;
    for (const Names &names : other_names()) {
        for (std::string_view other : names.others) {
            if (other == name) wanted = names.rule;
        }
    }
    std::string known;
    for (const PreRule &rule : rules()) {
        if (rule.name == wanted) return rule;
        known += (known.empty() ? "" : ", ") + std::string(rule.name);
    }
    for (const Names &names : other_names()) {
        for (std::string_view other : names.others) known += fmt::format(", {}", other);
    }
    return Status::unsupported(fmt::format("splitting rule '{}' isn't known; known are: {}", escaped(name), known));
}

struct PreSplitter::Stage {
    CodePointer code;
    bool jit = false;
};

/// One call of split(): what PCRE2 needs while it matches.
struct PreSplitter::Run {
    const std::vector<Stage> &stages;
    MatchContextPointer context;
    std::vector<MatchDataPointer> data;  // one a stage, since the stages are nested
    const std::function<void(std::string_view)> &word;

    /// Cuts `piece` by the stages from `index` on.
    Status cut(std::string_view piece, size_t index);
    /// The next match at or behind `start`; `found` tells whether there is one.
    Status match(std::string_view piece, size_t start, size_t index, bool *found);
};

PreSplitter::PreSplitter() = default;
PreSplitter::PreSplitter(PreSplitter &&) noexcept = default;
PreSplitter &PreSplitter::operator=(PreSplitter &&) noexcept = default;
PreSplitter::~PreSplitter() = default;

Result<PreSplitter> PreSplitter::create(const PreRule &rule) {
    PreSplitter splitter;
    for (std::string_view expression : rule.chain) {
        int error = 0;
        size_t offset = 0;
        Stage stage;
        stage.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                       PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
        if (stage.code == nullptr) {
            return pcre2_failure(fmt::format("splitting rule '{}', at byte {}", rule.name, offset), error);
        }
        // Without a compiler for this machine (or where memory can't be made executable) the interpreter does the same.
        stage.jit = pcre2_jit_compile(stage.code.get(), PCRE2_JIT_COMPLETE) == 0;
        splitter.stages_.push_back(std::move(stage));
    }
    return splitter;
}

bool PreSplitter::jit() const {
    for (const Stage &stage : stages_) {
        if (!stage.jit) return false;
    }
    return true;
}

Status PreSplitter::split(std::string_view text, const std::function<void(std::string_view)> &word) const {
    Run run{stages_, MatchContextPointer(pcre2_match_context_create(nullptr)), {}, word};
    if (run.context == nullptr) return Status::out_of_memory("splitting text into words: no memory");
    // The limits guard against expressions that explode; these are linear, and long runs of spaces are no attack.
    pcre2_set_match_limit(run.context.get(), UINT32_MAX);
    pcre2_set_depth_limit(run.context.get(), UINT32_MAX);
    for (const Stage &stage : stages_) {
        run.data.emplace_back(pcre2_match_data_create_from_pattern(stage.code.get(), nullptr));
        if (run.data.back() == nullptr) return Status::out_of_memory("splitting text into words: no memory");
    }
    return run.cut(text, 0);
}

Status PreSplitter::Run::match(std::string_view piece, size_t start, size_t index, bool *found) {
    const auto subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    pcre2_code *code = stages[index].code.get();
    pcre2_match_data *out = data[index].get();
    int result = pcre2_match(code, subject, piece.size(), start, PCRE2_NO_UTF_CHECK, out, context.get());
    if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
        result = pcre2_match(code, subject, piece.size(), start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, out, context.get());
    }
    *found = result > 0;
    if (result < 0 && result != PCRE2_ERROR_NOMATCH) return pcre2_failure("splitting text into words", result);
    return {};
}

Status PreSplitter::Run::cut(std::string_view piece, size_t index) {
    if (piece.empty()) return {};
    if (index == stages.size()) {
        word(piece);
        return {};
    }
    const size_t *borders = pcre2_get_ovector_pointer(data[index].get());
    size_t done = 0;
    while (done < piece.size()) {
        bool found = false;
        TENON_TRY(match(piece, done, index, &found));
        if (!found) break;
        const size_t begin = borders[0], end = borders[1];  // never empty: each alternative takes a character
        TENON_TRY(cut(piece.substr(done, begin - done), index + 1));
        TENON_TRY(cut(piece.substr(begin, end - begin), index + 1));
        done = end;
    }
    return cut(piece.substr(done), index + 1);
}

}  // namespace tenon::llm
