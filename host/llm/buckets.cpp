#include "llm/buckets.h"

#include <algorithm>
#include <bit>

namespace tenon::llm {
namespace {

int64_t bucket_for(int64_t tokens) {
    return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(tokens)));
}

/// The cheapest way for fewer tokens than the largest bucket: all in one bucket with padding, or the largest full one
/// and the rest in the same manner. Answers its cost.
int64_t split_rest(int64_t tokens, std::vector<Chunk> &out) {
    if (tokens == 0) return 0;
    const int64_t bucket = bucket_for(tokens), padded = bucket + k_run_cost;
    if (bucket == tokens) {
        out.push_back({tokens, bucket});
        return padded;
    }
    std::vector<Chunk> parts{{bucket / 2, bucket / 2}};
    const int64_t split = bucket / 2 + k_run_cost + split_rest(tokens - bucket / 2, parts);
    if (padded <= split) parts = {{tokens, bucket}};
    out.insert(out.end(), parts.begin(), parts.end());
    return std::min(padded, split);
}

}  // namespace

std::vector<Chunk> split_tokens(int64_t tokens, int64_t max_bucket) {
    std::vector<Chunk> chunks;
    for (; tokens >= max_bucket; tokens -= max_bucket) chunks.push_back({max_bucket, max_bucket});
    split_rest(std::max<int64_t>(0, tokens), chunks);
    return chunks;
}

std::vector<int64_t> capacity_buckets(int64_t block_rows, int64_t cache_rows) {
    std::vector<int64_t> capacities;
    for (int64_t rows = block_rows; rows < cache_rows; rows *= 2) capacities.push_back(rows);
    capacities.push_back(cache_rows);
    return capacities;
}

}  // namespace tenon::llm
