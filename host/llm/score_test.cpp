#include "llm/score.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace tenon::llm;

TEST_CASE("equal logits share the likelihood") {
    const std::vector<float> logits(8, 3.0f);
    CHECK(negative_log_likelihood(logits, 5) == doctest::Approx(std::log(8.0)));
}

TEST_CASE("likelihoods of all tokens add up to 1, however large the logits") {
    for (const float shift : {-1e4f, 0.0f, 3e4f}) {
        const std::vector<float> logits{shift + 1, shift - 2, shift + 4, shift};
        double sum = 0;
        for (int32_t id = 0; id < 4; ++id) sum += std::exp(-negative_log_likelihood(logits, id));
        CHECK(sum == doctest::Approx(1.0));
    }
}

TEST_CASE("the highest logits fall, and equal ones come by rising id") {
    const std::vector<float> logits{1, 5, 5, -2, 5, 9};
    const std::vector<ScoredToken> expected{{5, 9.0f}, {1, 5.0f}, {2, 5.0f}, {4, 5.0f}};
    CHECK(highest_logits(logits, 4) == expected);
    CHECK(highest_logits(logits, 100).size() == logits.size());
    CHECK(highest_logits(logits, 0).empty());
}

TEST_CASE("a NaN is never among the highest") {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> logits{nan, 1, nan, 2};
    CHECK(highest_logits(logits, 2) == std::vector<ScoredToken>{{3, 2.0f}, {1, 1.0f}});
}
