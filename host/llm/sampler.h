// The choice of the next token from logits. The chain, in the order in which users of such runtimes know it:
//
//   banned tokens -> repeat penalty -> top-k -> top-p -> min-p -> temperature -> draw
//
// Top-p and min-p so see the probabilities at temperature 1: a high temperature flattens what they left, not what they
// cut. Equal logits are ordered by id, the lowest first, so that every step has one answer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tenon/status.h"

namespace tenon::llm {

struct SamplerOptions {
    double temperature = 0.8;     // >= 0; 0 takes the highest logit (greedy)
    int32_t top_k = 40;           // keep the k highest; 0: all
    double top_p = 0.95;          // (0, 1]: keep the fewest highest whose probabilities reach p; 1: all
    double min_p = 0.05;          // [0, 1]: keep those with at least p times the highest probability; 0: all
    double repeat_penalty = 1.0;  // > 0; logits of recent tokens are divided by it if positive, else multiplied; 1: off
    int32_t repeat_window = 64;   // how many of the last tokens are recent; 0: none
    uint64_t seed = 0;
    std::vector<int32_t> banned;  // ids never chosen, such as those that end a generation; others are ignored
};

/// invalid_argument naming the option that is out of its range or not a number. Any thread.
Status check(const SamplerOptions &options);

/// Chooses tokens for one sequence. One thread. After construction no call allocates.
///
/// The random numbers are xoshiro256** (Blackman, Vigna 2018, arXiv:1805.01407), seeded through splitmix64, one 53-bit
/// fraction for each drawn token and none for greedy ones; sums are in double. So the same logits and seed choose the
/// same tokens on every platform, as long as its exp() doesn't differ by more than rounding at the very border of two
/// tokens.
class Sampler {
public:
    /// Errors as check(options); `vocabulary_size` is at least 1.
    static Result<Sampler> create(const SamplerOptions &options, int32_t vocabulary_size);

    /// The next token. `logits` has one per token. A NaN is taken as -infinity; tokens at +infinity share the draw
    /// among themselves. invalid_argument if the number of logits is wrong or none is above -infinity.
    Result<int32_t> sample(std::span<const float> logits);

    /// Tells a token of the sequence, prompt included, for the repeat penalty. Ids outside the vocabulary are ignored.
    void accept(int32_t id);

    /// As new, with the same seed.
    void reset();

private:
    struct Candidate {
        float logit;
        int32_t id;
    };
    static bool better(const Candidate &a, const Candidate &b) {
        return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
    }

    explicit Sampler(const SamplerOptions &options, int32_t vocabulary_size);
    void adjust(std::span<const float> logits);
    void penalise();
    int32_t highest() const;
    void keep_infinite();
    void keep_best(size_t count);
    void keep_all_above(float least);
    void keep_top_p();
    double total_weight() const;
    int32_t draw();
    double next_fraction();

    SamplerOptions options_;
    std::vector<float> logits_;          // [vocabulary], after bans and penalty, no NaN
    std::vector<Candidate> candidates_;  // what is left
    std::vector<double> weights_;        // of the candidates, while drawing
    std::vector<int32_t> recent_;        // ring of the last accepted tokens
    size_t recent_at_ = 0;
    std::vector<uint32_t> penalised_in_;  // [vocabulary]: the round in which a token was penalised
    uint32_t round_ = 0;
    float highest_ = 0;  // of logits_
    uint64_t random_[4] = {};
};

}  // namespace tenon::llm
