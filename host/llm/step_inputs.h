// What a decoder graph gets as inputs for a run over some tokens of one sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "llm/architecture.h"
#include "tenon/status.h"

namespace tenon::llm {

/// Makes inputs in memory that it keeps, so that a steady loop allocates nothing. One thread.
class StepInputs {
public:
    /// For graphs of up to `max_tokens` token slots over a cache of `cache_rows` positions.
    StepInputs(int64_t max_tokens, int64_t cache_rows);

    /// Calls `take(i, words)`, i an index into io::k_inputs, for each input of a graph of `key` that runs `tokens`, at
    /// positions from `first` on, and answers logits of the last one, where it answers those of one row. Slots behind
    /// the tokens are padding: they are of no sequence and write no row. Words are valid during the call; the first
    /// failure ends it.
    template <class Take>
    Status each(const GraphKey &key, std::span<const int32_t> tokens, int64_t first, Take &&take) {
        for (size_t input = 0; input < io::k_inputs.size(); ++input)
            TENON_TRY(take(input, make(io::k_inputs[input], key, tokens, static_cast<int32_t>(first))));
        return {};
    }

private:
    std::span<const int32_t> make(std::string_view input, const GraphKey &key, std::span<const int32_t> tokens,
                                  int32_t first);
    std::span<const int32_t> word(int32_t value);

    std::vector<int32_t> words_;   // [max_tokens], what is made next
    std::vector<int32_t> blocks_;  // [blocks of the cache]: block i of the sequence is block i of the cache
};

}  // namespace tenon::llm
