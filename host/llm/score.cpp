#include "llm/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::llm {
namespace {

int32_t highest(std::span<const float> logits) {
    size_t best = 0;
    for (size_t i = 1; i < logits.size(); ++i)
        if (logits[i] > logits[best] || std::isnan(logits[best])) best = i;
    return static_cast<int32_t>(best);
}

}  // namespace

double negative_log_likelihood(std::span<const float> logits, int32_t id) {
    // Shifted by the highest, so that no exponential overflows.
    const double shift = logits[static_cast<size_t>(highest(logits))];
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - shift);
    return std::log(sum) + shift - static_cast<double>(logits[static_cast<size_t>(id)]);
}

std::vector<ScoredToken> highest_logits(std::span<const float> logits, int64_t count) {
    std::vector<ScoredToken> all(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) all[i] = {static_cast<int32_t>(i), logits[i]};
    const auto rank = [](const ScoredToken &token) {
        return std::isnan(token.second) ? -std::numeric_limits<float>::infinity() : token.second;
    };
    const auto kept = static_cast<std::ptrdiff_t>(std::clamp<int64_t>(count, 0, static_cast<int64_t>(all.size())));
    std::ranges::partial_sort(all, all.begin() + kept, [&](const ScoredToken &a, const ScoredToken &b) {
        return rank(a) != rank(b) ? rank(a) > rank(b) : a.first < b.first;
    });
    all.resize(static_cast<size_t>(kept));
    return all;
}

namespace {

/// Numbers from which nothing follows must not pass for an answer.
Status check_logits(std::span<const float> logits, size_t position) {
    const bool usable = std::ranges::none_of(logits, [](float l) { return std::isnan(l); }) &&
                        std::isfinite(logits[static_cast<size_t>(highest(logits))]);
    if (usable) return {};
    return Status::invalid_argument(
        fmt::format("the logits after token {} aren't numbers: the model's weights may be damaged", position));
}

}  // namespace

Result<Score> score(Engine &engine, std::span<const int32_t> tokens, int64_t top, int64_t greedy,
                    uint64_t cancel_token) {
    Score score;
    double sum = 0;
    const auto take = [&](size_t index, std::span<const float> logits) -> Status {
        TENON_TRY(check_logits(logits, index));
        PositionScore position{highest(logits), std::nullopt};
        if (index + 1 < tokens.size()) {
            position.nll = negative_log_likelihood(logits, tokens[index + 1]);
            sum += *position.nll;
        }
        score.positions.push_back(position);
        return {};
    };
    engine.truncate(0);
    TENON_TRY(engine.feed_each(tokens, take, cancel_token));
    if (tokens.size() > 1) score.mean_nll = sum / static_cast<double>(tokens.size() - 1);
    score.top = highest_logits(engine.logits(), top);
    for (int64_t i = 0; i < greedy; ++i) {
        const int32_t id = highest(engine.logits());
        score.greedy.push_back(id);
        if (i + 1 == greedy) break;
        TENON_TRY(engine.feed({&id, 1}, cancel_token));
        TENON_TRY(check_logits(engine.logits(), tokens.size() + static_cast<size_t>(i)));
    }
    return score;
}

}  // namespace tenon::llm
