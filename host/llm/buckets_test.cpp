#include "llm/buckets.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

using namespace tenon::llm;

namespace {

int64_t cost(const std::vector<Chunk> &chunks) {
    int64_t sum = 0;
    for (const Chunk &chunk : chunks) sum += chunk.bucket + k_run_cost;
    return sum;
}

/// The least cost of any split into powers of two up to `max_bucket`, by trying all (padding only where all fits).
int64_t least_cost(int64_t tokens, int64_t max_bucket) {
    std::vector<int64_t> best(static_cast<std::size_t>(tokens) + 1, 0);
    for (int64_t n = 1; n <= tokens; ++n) {
        int64_t least = INT64_MAX;
        for (int64_t bucket = 1; bucket <= max_bucket; bucket *= 2)
            least =
                std::min(least, bucket + k_run_cost + best[static_cast<std::size_t>(std::max<int64_t>(0, n - bucket))]);
        best[static_cast<std::size_t>(n)] = least;
    }
    return best[static_cast<std::size_t>(tokens)];
}

}  // namespace

TEST_CASE("a split holds every token once, in buckets that are powers of two") {
    for (int64_t tokens = 0; tokens <= 1300; ++tokens) {
        CAPTURE(tokens);
        int64_t sum = 0;
        for (const Chunk &chunk : split_tokens(tokens)) {
            CHECK(std::has_single_bit(static_cast<uint64_t>(chunk.bucket)));
            CHECK(chunk.bucket <= k_max_bucket);
            CHECK(chunk.tokens >= 1);
            CHECK(chunk.tokens <= chunk.bucket);
            sum += chunk.tokens;
        }
        CHECK(sum == tokens);
    }
}

TEST_CASE("only the last run of a split has padding") {
    for (int64_t tokens = 1; tokens <= 1300; ++tokens) {
        const auto chunks = split_tokens(tokens);
        for (std::size_t i = 0; i + 1 < chunks.size(); ++i) CHECK(chunks[i].tokens == chunks[i].bucket);
    }
}

TEST_CASE("no split into buckets costs less") {
    for (const int64_t max_bucket : {1, 4, 32, 512})
        for (int64_t tokens = 0; tokens <= 1100; tokens += tokens < 70 ? 1 : 7) {
            CAPTURE(tokens);
            CAPTURE(max_bucket);
            CHECK(cost(split_tokens(tokens, max_bucket)) == least_cost(tokens, max_bucket));
        }
}

TEST_CASE("one token takes one slot") {
    CHECK(split_tokens(1) == std::vector<Chunk>{{1, 1}});
}

TEST_CASE("capacities double from one block to the whole cache") {
    CHECK(capacity_buckets(256, 256) == std::vector<int64_t>{256});
    CHECK(capacity_buckets(256, 4096) == std::vector<int64_t>{256, 512, 1024, 2048, 4096});
    CHECK(capacity_buckets(256, 768) == std::vector<int64_t>{256, 512, 768});
}
