// Shapes are fixed per plan, so tokens are run in buckets: powers of two, the last one of a prompt partly padding. What
// is chosen here is which buckets, and which capacities of the cache get plans of their own.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::llm {

/// The largest bucket: beyond it a larger one computes no faster and takes more memory.
inline constexpr int64_t k_max_bucket = 512;

/// One run: `tokens` tokens in a bucket of `bucket` slots.
struct Chunk {
    int64_t tokens = 0, bucket = 0;
    bool operator==(const Chunk &) const = default;
};

/// Splits `tokens` tokens into runs of buckets up to `max_bucket` (a power of two), full ones first. Chooses what does
/// the least work, where a run costs its slots, padding too, plus the time that `k_run_cost` slots take. Empty for 0.
std::vector<Chunk> split_tokens(int64_t tokens, int64_t max_bucket = k_max_bucket);

/// What a run costs beside its slots: reading all weights, in the slots that could be computed meanwhile.
inline constexpr int64_t k_run_cost = 8;

/// Capacities that get plans where a decomposed attention pays for the capacity: block_rows, doubled until
/// `cache_rows`, which is always the last. Both positive, cache_rows a multiple of block_rows.
std::vector<int64_t> capacity_buckets(int64_t block_rows, int64_t cache_rows);

}  // namespace tenon::llm
