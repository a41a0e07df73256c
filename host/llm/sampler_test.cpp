#include "llm/sampler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace tenon;
using namespace tenon::llm;

namespace {

constexpr float k_inf = std::numeric_limits<float>::infinity(), k_nan = std::numeric_limits<float>::quiet_NaN();

/// Everything off but temperature 1.
SamplerOptions plain(uint64_t seed = 1) {
    return {.temperature = 1,
            .top_k = 0,
            .top_p = 1,
            .min_p = 0,
            .repeat_penalty = 1,
            .repeat_window = 64,
            .seed = seed,
            .banned = {}};
}

Sampler make(const SamplerOptions &options, size_t vocabulary) {
    auto sampler = Sampler::create(options, static_cast<int32_t>(vocabulary));
    INFO(sampler.status().message());
    REQUIRE(sampler.ok());
    return *std::move(sampler);
}

int32_t next(Sampler &sampler, const std::vector<float> &logits) {
    auto id = sampler.sample(logits);
    REQUIRE(id.ok());
    return *id;
}

std::map<int32_t, int> draw(const SamplerOptions &options, const std::vector<float> &logits, int draws) {
    Sampler sampler = make(options, logits.size());
    std::map<int32_t, int> counts;
    for (int i = 0; i < draws; ++i) ++counts[next(sampler, logits)];
    return counts;
}

std::set<int32_t> drawn(const SamplerOptions &options, const std::vector<float> &logits, int draws = 20000) {
    std::set<int32_t> ids;
    for (const auto &[id, count] : draw(options, logits, draws)) ids.insert(id);
    return ids;
}

/// Logits whose softmax is `probabilities`.
std::vector<float> logits_of(const std::vector<double> &probabilities) {
    std::vector<float> logits;
    for (double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
    return logits;
}

/// Whether counts fit probabilities: Pearson's chi-square, with a bound that a right sampler passes with 1 - 1e-6 for
/// up to five tokens. Seeds are fixed, so that it either holds or doesn't.
bool fits(const std::map<int32_t, int> &counts, const std::vector<double> &probabilities, int draws) {
    double chi_square = 0;
    for (size_t id = 0; id < probabilities.size(); ++id) {
        const double expected = probabilities[id] * draws;
        const auto found = counts.find(static_cast<int32_t>(id));
        const double count = found == counts.end() ? 0 : found->second;
        if (expected == 0 && count > 0) return false;
        if (expected > 0) chi_square += (count - expected) * (count - expected) / expected;
    }
    return chi_square < 33;
}

}  // namespace

TEST_CASE("sampler: temperature 0 takes the highest logit, of equal ones the lowest id") {
    SamplerOptions options;
    options.temperature = 0;
    Sampler sampler = make(options, 4);
    CHECK(next(sampler, {1, 3, 3, 2}) == 1);
    CHECK(next(sampler, {-5, -5, -5, -5}) == 0);
    CHECK(next(sampler, {0, k_nan, -1, -k_inf}) == 0);
    CHECK(next(sampler, {0, k_inf, k_inf, 1}) == 1);
}

TEST_CASE("sampler: tokens are drawn by their probabilities, at the temperature") {
    const std::vector<double> p = {0.5, 0.2, 0.2, 0.07, 0.03};
    CHECK(fits(draw(plain(), logits_of(p), 100000), p, 100000));
    for (double temperature : {0.5, 2.0}) {
        SamplerOptions options = plain(5);
        options.temperature = temperature;
        std::vector<double> heated;
        double total = 0;
        for (double one : p) total += std::pow(one, 1 / temperature);
        for (double one : p) heated.push_back(std::pow(one, 1 / temperature) / total);
        const auto counts = draw(options, logits_of(p), 100000);
        CHECK(fits(counts, heated, 100000));
        CHECK_FALSE(fits(counts, p, 100000));
    }
}

TEST_CASE("sampler: top-k keeps the k highest, of equal ones the lowest ids") {
    const std::vector<float> logits = {0, 1, 1, 1, 0.5f, 1};
    SamplerOptions options = plain();
    options.top_k = 3;
    CHECK(drawn(options, logits) == std::set<int32_t>{1, 2, 3});
    options.top_k = 1;
    CHECK(drawn(options, logits) == std::set<int32_t>{1});
    options.top_k = 100;
    CHECK(drawn(options, logits).size() == 6);
}

TEST_CASE("sampler: top-p keeps the fewest highest that reach p, among what top-k left") {
    const std::vector<float> logits = logits_of({0.1, 0.4, 0.05, 0.3, 0.15});
    SamplerOptions options = plain();
    const auto with = [&](double p) {
        options.top_p = p;
        return drawn(options, logits);
    };
    CHECK(with(0.39) == std::set<int32_t>{1});
    CHECK(with(0.41) == std::set<int32_t>{1, 3});
    CHECK(with(0.69) == std::set<int32_t>{1, 3});
    CHECK(with(0.71) == std::set<int32_t>{1, 3, 4});
    CHECK(with(1.0).size() == 5);
    CHECK(with(1e-9) == std::set<int32_t>{1});
    options.top_k = 2;  // 4/7 and 3/7 now
    CHECK(with(0.56) == std::set<int32_t>{1});
    CHECK(with(0.58) == std::set<int32_t>{1, 3});
}

TEST_CASE("sampler: min-p keeps what has at least that part of the highest probability") {
    const std::vector<float> logits = logits_of({0.1, 0.4, 0.05, 0.3, 0.15});
    SamplerOptions options = plain();
    options.min_p = 0.3;
    CHECK(drawn(options, logits) == std::set<int32_t>{1, 3, 4});
    options.min_p = 1;
    CHECK(drawn(options, logits) == std::set<int32_t>{1});
    options.min_p = 0.3;
    options.top_k = 2;
    CHECK(drawn(options, logits) == std::set<int32_t>{1, 3});
}

TEST_CASE("sampler: temperature comes last, so that heat brings back nothing that was cut") {
    const std::vector<float> logits = logits_of({0.6, 0.3, 0.06, 0.04});
    SamplerOptions options = plain();
    options.temperature = 100;
    options.top_p = 0.8;
    CHECK(drawn(options, logits) == std::set<int32_t>{0, 1});
    options.top_p = 1;
    options.min_p = 0.2;
    CHECK(drawn(options, logits) == std::set<int32_t>{0, 1});
}

TEST_CASE("sampler: large vocabularies are cut alike, however few tokens a step has to look at") {
    std::vector<float> logits(50000);
    for (size_t i = 0; i < logits.size(); ++i) logits[(i * 7919) % logits.size()] = -0.001f * static_cast<float>(i);
    const auto place = [&](int32_t id) { return -logits[static_cast<size_t>(id)] / 0.001f; };
    double total = 0;
    for (float logit : logits) total += std::exp(static_cast<double>(logit));
    for (double p : {0.1, 0.5, 0.9, 0.999}) {
        double reached = 0;
        size_t kept = 0;
        while (reached < p * total) reached += std::exp(-0.001 * static_cast<double>(kept++));
        SamplerOptions options = plain();
        options.top_p = p;
        float farthest = 0;
        for (int32_t id : drawn(options, logits, 500)) farthest = std::max(farthest, place(id));
        CHECK(farthest < static_cast<float>(kept) + 0.5f);
        CHECK(farthest > static_cast<float>(kept) * 0.5f);
    }
}

TEST_CASE("sampler: the repeat penalty takes from recent tokens, once each, and forgets beyond its window") {
    SamplerOptions options = plain();
    options.temperature = 0;
    options.repeat_penalty = 2;
    options.repeat_window = 2;
    Sampler sampler = make(options, 3);
    const std::vector<float> logits = {4, 3, -1};
    CHECK(next(sampler, logits) == 0);
    sampler.accept(0);
    sampler.accept(0);  // 2, not 1
    CHECK(next(sampler, logits) == 1);
    CHECK(next(sampler, {4, 1.5f, -1}) == 0);
    CHECK(next(sampler, {-4, -7, -7.5f}) == 1);  // negative ones are multiplied
    sampler.accept(1);
    sampler.accept(2);
    CHECK(next(sampler, logits) == 0);  // both zeros have left the window
    sampler.accept(-1);
    sampler.accept(3);
    sampler.reset();
    CHECK(next(sampler, {1, 0.9f, 0}) == 0);
}

TEST_CASE("sampler: banned tokens are never chosen") {
    SamplerOptions options = plain();
    options.banned = {1, 99, -1};
    CHECK(drawn(options, {0, 10, 0}) == std::set<int32_t>{0, 2});
    options.temperature = 0;
    CHECK(drawn(options, {0, 10, 1}, 1) == std::set<int32_t>{2});
}

TEST_CASE("sampler: NaN and infinities") {
    CHECK(drawn(plain(), {k_nan, 0, -k_inf, 0}) == std::set<int32_t>{1, 3});
    CHECK(drawn(plain(), {5, k_inf, k_nan, k_inf}) == std::set<int32_t>{1, 3});
    SamplerOptions all_on;
    CHECK(drawn(all_on, {5, k_inf, k_nan, -k_inf}) == std::set<int32_t>{1});
    CHECK(drawn(all_on, {3e38f, -3e38f, 0}) == std::set<int32_t>{0});
    for (const std::vector<float> &none : {std::vector<float>{k_nan, k_nan}, std::vector<float>{-k_inf, k_nan}}) {
        auto id = make(plain(), 2).sample(none);
        REQUIRE_FALSE(id.ok());
        CHECK(id.status().code() == Code::invalid_argument);
    }
    CHECK_FALSE(make(plain(), 3).sample(std::vector<float>{1, 2}).ok());
}

TEST_CASE("sampler: the seed decides, and reset() begins anew") {
    const std::vector<float> logits(1000, 0.0f);
    Sampler a = make(plain(42), 1000), b = make(plain(42), 1000), c = make(plain(43), 1000);
    std::vector<int32_t> from_a, from_b, from_c, again;
    for (int i = 0; i < 50; ++i) {
        from_a.push_back(next(a, logits));
        from_b.push_back(next(b, logits));
        from_c.push_back(next(c, logits));
    }
    a.reset();
    for (int i = 0; i < 50; ++i) again.push_back(next(a, logits));
    CHECK(from_a == from_b);
    CHECK(from_a == again);
    CHECK(from_a != from_c);
}

TEST_CASE("sampler: options outside their range are refused by name") {
    const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
    const auto refused = [](std::string_view name, auto &&change) {
        SamplerOptions options;
        change(options);
        const auto sampler = Sampler::create(options, 10);
        REQUIRE_FALSE(sampler.ok());
        CHECK(sampler.status().code() == Code::invalid_argument);
        CHECK(sampler.status().message().starts_with(name));
    };
    for (double value : {-0.1, nan, infinity}) {
        refused("temperature", [&](SamplerOptions &o) { o.temperature = value; });
    }
    for (double value : {0.0, -1.0, 1.1, nan}) refused("top-p", [&](SamplerOptions &o) { o.top_p = value; });
    for (double value : {-0.1, 1.1, nan}) refused("min-p", [&](SamplerOptions &o) { o.min_p = value; });
    for (double value : {0.0, -1.0, nan, infinity, 1e-300}) {
        refused("repeat penalty", [&](SamplerOptions &o) { o.repeat_penalty = value; });
    }
    refused("top-k", [](SamplerOptions &o) { o.top_k = -1; });
    refused("repeat window", [](SamplerOptions &o) { o.repeat_window = -1; });
    CHECK_FALSE(Sampler::create({}, 0).ok());
}
