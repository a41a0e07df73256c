#include "llm/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace tenon::llm {

namespace {

constexpr float k_never = -std::numeric_limits<float>::infinity();

// How many candidates top-p looks at first where top-k doesn't limit them; most often they reach p.
constexpr size_t k_first_look = 128;
constexpr size_t k_heap_limit = 512;

// Beyond, a logit that is a float could leave its range.
constexpr double k_least_penalty = 1e-6;

}  // namespace

Status check(const SamplerOptions &options) {
    const auto refuse = [](std::string_view name, double value, std::string_view range) {
        return Status::invalid_argument(fmt::format("{} is {}; it must be {}", name, value, range));
    };
    // Written so that NaN fails.
    if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
        return refuse("temperature", options.temperature, "0 (greedy) or more");
    }
    if (options.top_k < 0) return refuse("top-k", options.top_k, "0 (off) or more");
    if (!(options.top_p > 0 && options.top_p <= 1)) return refuse("top-p", options.top_p, "over 0, at most 1 (off)");
    if (!(options.min_p >= 0 && options.min_p <= 1)) return refuse("min-p", options.min_p, "from 0 (off) to 1");
    if (!(options.repeat_penalty >= k_least_penalty && options.repeat_penalty <= 1 / k_least_penalty)) {
        return refuse("repeat penalty", options.repeat_penalty, "over 0; 1 is off, 1.1 is usual");
    }
    if (options.repeat_window < 0) return refuse("repeat window", options.repeat_window, "0 or more");
    return {};
}

Result<Sampler> Sampler::create(const SamplerOptions &options, int32_t vocabulary_size) {
    TENON_TRY(check(options));
    if (vocabulary_size < 1) {
        return Status::invalid_argument(fmt::format("a sampler needs a vocabulary; its size is {}", vocabulary_size));
    }
    return Sampler(options, vocabulary_size);
}

Sampler::Sampler(const SamplerOptions &options, int32_t vocabulary_size)
    : options_(options),
      logits_(static_cast<size_t>(vocabulary_size)),
      recent_(options.repeat_penalty == 1 ? 0 : static_cast<size_t>(options.repeat_window)),
      penalised_in_(recent_.empty() ? 0 : logits_.size()) {
    std::erase_if(options_.banned, [&](int32_t id) { return id < 0 || id >= vocabulary_size; });
    candidates_.reserve(logits_.size());
    weights_.reserve(logits_.size());
    reset();
}

void Sampler::reset() {
    std::fill(recent_.begin(), recent_.end(), -1);
    recent_at_ = 0;
    uint64_t state = options_.seed;
    for (uint64_t &word : random_) {  // splitmix64 (Steele, Lea, Flood 2014)
        state += 0x9E3779B97F4A7C15u;
        uint64_t z = state;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        word = z ^ z >> 31;
    }
}

double Sampler::next_fraction() {
    const uint64_t result = std::rotl(random_[1] * 5, 7) * 9;
    const uint64_t shifted = random_[1] << 17;
    random_[2] ^= random_[0];
    random_[3] ^= random_[1];
    random_[1] ^= random_[2];
    random_[0] ^= random_[3];
    random_[2] ^= shifted;
    random_[3] = std::rotl(random_[3], 45);
    return static_cast<double>(result >> 11) * 0x1p-53;
}

void Sampler::accept(int32_t id) {
    if (recent_.empty() || id < 0 || static_cast<size_t>(id) >= logits_.size()) return;
    recent_[recent_at_] = id;
    recent_at_ = (recent_at_ + 1) % recent_.size();
}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
    if (logits.size() != logits_.size()) {
        return Status::invalid_argument(
            fmt::format("{} logits for a vocabulary of {} tokens", logits.size(), logits_.size()));
    }
    adjust(logits);
    if (highest_ == k_never) {
        return Status::invalid_argument("no token can follow: every logit is -infinity, not a number or banned");
    }
    if (options_.temperature == 0 || options_.top_k == 1) return highest();
    if (std::isinf(highest_)) {
        keep_infinite();
        return draw();
    }
    // What min-p keeps doesn't depend on the steps before it, which never drop the highest. So its bound serves to look
    // at fewer tokens early, and the order of the chain is kept all the same.
    const float least = options_.min_p > 0 ? static_cast<float>(highest_ + std::log(options_.min_p)) : k_never;
    const bool limited = options_.top_k > 0 && static_cast<size_t>(options_.top_k) < logits_.size();
    if (limited) keep_best(static_cast<size_t>(options_.top_k));
    if (options_.top_p < 1) {
        keep_top_p();
    } else if (!limited) {
        keep_all_above(least);
    }
    std::erase_if(candidates_, [&](const Candidate &c) { return c.logit < least; });
    return draw();
}

/// Fills logits_ and highest_.
void Sampler::adjust(std::span<const float> logits) {
    for (size_t i = 0; i < logits.size(); ++i) logits_[i] = logits[i] == logits[i] ? logits[i] : k_never;
    for (int32_t id : options_.banned) logits_[static_cast<size_t>(id)] = k_never;
    penalise();
    highest_ = k_never;
    for (float logit : logits_) highest_ = std::max(highest_, logit);
    candidates_.clear();
}

/// Once for each recent token, however often it occurred (Keskar et al. 2019, arXiv:1909.05858, with the sign heeded).
void Sampler::penalise() {
    if (recent_.empty()) return;
    if (++round_ == 0) {
        std::fill(penalised_in_.begin(), penalised_in_.end(), 0u);
        round_ = 1;
    }
    const auto penalty = static_cast<float>(options_.repeat_penalty);
    for (int32_t id : recent_) {
        if (id < 0 || penalised_in_[static_cast<size_t>(id)] == round_) continue;
        penalised_in_[static_cast<size_t>(id)] = round_;
        float &logit = logits_[static_cast<size_t>(id)];
        logit = logit > 0 ? logit / penalty : logit * penalty;
    }
}

int32_t Sampler::highest() const {
    return static_cast<int32_t>(std::find(logits_.begin(), logits_.end(), highest_) - logits_.begin());
}

void Sampler::keep_infinite() {
    for (size_t i = 0; i < logits_.size(); ++i) {
        if (logits_[i] == highest_) candidates_.push_back({0, static_cast<int32_t>(i)});
    }
    highest_ = 0;
}

/// The `count` best, best first. A few: by a heap of the best so far whose top is the worst of them, one comparison for
/// most tokens. Many: by partitioning all.
void Sampler::keep_best(size_t count) {
    if (count > k_heap_limit) {
        keep_all_above(k_never);
        const auto end = candidates_.begin() + static_cast<ptrdiff_t>(count);
        if (end != candidates_.end()) std::nth_element(candidates_.begin(), end, candidates_.end(), better);
        candidates_.erase(end, candidates_.end());
        std::sort(candidates_.begin(), candidates_.end(), better);
        return;
    }
    candidates_.clear();
    for (size_t i = 0; i < logits_.size(); ++i) {
        const Candidate candidate{logits_[i], static_cast<int32_t>(i)};
        if (candidates_.size() == count) {
            if (!better(candidate, candidates_.front())) continue;
            std::pop_heap(candidates_.begin(), candidates_.end(), better);
            candidates_.back() = candidate;
        } else {
            candidates_.push_back(candidate);
        }
        std::push_heap(candidates_.begin(), candidates_.end(), better);
    }
    std::sort_heap(candidates_.begin(), candidates_.end(), better);
}

void Sampler::keep_all_above(float least) {
    candidates_.clear();
    for (size_t i = 0; i < logits_.size(); ++i) {
        if (logits_[i] >= least) candidates_.push_back({logits_[i], static_cast<int32_t>(i)});
    }
}

double Sampler::total_weight() const {
    double total = 0;
    if (candidates_.empty()) {
        for (float logit : logits_) total += std::exp(static_cast<double>(logit) - highest_);
    } else {
        for (const Candidate &c : candidates_) total += std::exp(static_cast<double>(c.logit) - highest_);
    }
    return total;
}

/// Of the candidates, or of all tokens where there are none yet, the fewest best that reach p.
void Sampler::keep_top_p() {
    const double wanted = options_.top_p * total_weight();
    const bool all = candidates_.empty();
    for (size_t look = all ? k_first_look : candidates_.size();; look *= 8) {
        look = std::min(look, logits_.size());
        if (all) keep_best(look);
        double reached = 0;
        for (size_t i = 0; i < candidates_.size(); ++i) {
            reached += std::exp(static_cast<double>(candidates_[i].logit) - highest_);
            if (reached < wanted) continue;
            candidates_.resize(i + 1);
            return;
        }
        if (!all || look == logits_.size()) return;  // only rounding kept the sum below p
    }
}

/// A candidate by its probability at the temperature.
int32_t Sampler::draw() {
    weights_.clear();
    double total = 0;
    for (const Candidate &c : candidates_) {
        weights_.push_back(std::exp((static_cast<double>(c.logit) - highest_) / options_.temperature));
        total += weights_.back();
    }
    double rest = next_fraction() * total;
    size_t last = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
        if (weights_[i] <= 0) continue;
        last = i;
        rest -= weights_[i];
        if (rest < 0) break;
    }
    return candidates_[last].id;
}

}  // namespace tenon::llm
