// What a model makes of a text: the likelihood of its tokens, the best tokens to follow, a greedy continuation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "llm/engine.h"
#include "tenon/status.h"

namespace tenon::llm {

/// A token and its logit.
using ScoredToken = std::pair<int32_t, float>;

struct PositionScore {
    int32_t top = 0;            // the likeliest token to follow
    std::optional<double> nll;  // negative log likelihood (natural) of the one that does; nothing for the last
};

struct Score {
    std::vector<PositionScore> positions;  // one a token
    std::optional<double> mean_nll;        // over the tokens after the first; nothing for one token
    std::vector<ScoredToken> top;          // likeliest first; equal logits by rising id
    std::vector<int32_t> greedy;           // what follows, always the likeliest token
};

/// Scores `tokens` from an empty cache: their likelihoods, the `top` likeliest tokens to follow (fewer if the
/// vocabulary is smaller), `greedy` tokens of continuation. Errors as Engine::feed.
Result<Score> score(Engine &engine, std::span<const int32_t> tokens, int64_t top, int64_t greedy,
                    uint64_t cancel_token = 0);

/// -log softmax(logits)[id], in double. NaN where a logit is NaN or all are -infinity.
double negative_log_likelihood(std::span<const float> logits, int32_t id);
/// The `count` highest logits, falling, equal ones by rising id. A NaN counts as -infinity.
std::vector<ScoredToken> highest_logits(std::span<const float> logits, int64_t count);

}  // namespace tenon::llm
