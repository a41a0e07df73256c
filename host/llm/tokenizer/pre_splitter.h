// The first step of byte-level BPE: text is cut into words, and merges never cross their borders. Where to cut is a
// rule that a model is trained with; GGUF names it in `tokenizer.ggml.pre`. A rule is a chain of regular expressions:
// each cuts every piece of the one before into its matches and the gaps between them.
//
// The expressions are run by PCRE2 with its just-in-time compiler where it has one. Its Unicode tables are older than
// those of the tokenizers that models are trained with, so that the classes are written out with what is missing
// (unicode_additions.h), and white space is Unicode's White_Space, which PCRE2's \s isn't.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/status.h"

namespace tenon::llm {

/// A way of cutting, with what else the name implies for a file that doesn't say it.
struct PreRule {
    std::string_view name;                // as in `tokenizer.ggml.pre`
    std::vector<std::string_view> chain;  // PCRE2 expressions, in order
    bool whole_words_first = false;       // a word that is in the vocabulary becomes that token, whatever merges say
    bool add_bos = false;                 // where `tokenizer.ggml.add_bos_token` is missing
};

/// The rule that `name` stands for; names that share a rule are known too. Unsupported, with all names, if there is
/// none.
Result<PreRule> find_pre_rule(std::string_view name);

/// A compiled rule. Immutable; any thread.
class PreSplitter {
public:
    /// Fails only if PCRE2 refuses an expression or has no memory.
    static Result<PreSplitter> create(const PreRule &rule);
    PreSplitter(PreSplitter &&) noexcept;
    PreSplitter &operator=(PreSplitter &&) noexcept;
    ~PreSplitter();

    /// Calls `word` for each word of `text` in order; together they are `text`. `text` must be well-formed UTF-8. Time
    /// grows linearly with the text.
    Status split(std::string_view text, const std::function<void(std::string_view)> &word) const;

    /// Whether PCRE2 compiles to machine code here; the words are the same without, some four times slower.
    bool jit() const;

private:
    struct Stage;
    struct Run;
    PreSplitter();
    std::vector<Stage> stages_;
};

}  // namespace tenon::llm
