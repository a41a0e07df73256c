#include "llm/step_inputs.h"

#include <algorithm>
#include <numeric>

namespace tenon::llm {

StepInputs::StepInputs(int64_t max_tokens, int64_t cache_rows)
    : words_(static_cast<size_t>(max_tokens)), blocks_(static_cast<size_t>(cache_rows / k_cache_block_rows)) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
}

std::span<const int32_t> StepInputs::word(int32_t value) {
    words_[0] = value;
    return std::span(words_).first(1);
}

std::span<const int32_t> StepInputs::make(std::string_view input, const GraphKey &key, std::span<const int32_t> tokens,
                                          int32_t first) {
    const std::span<int32_t> slots = std::span(words_).first(static_cast<size_t>(key.tokens));
    const std::span<int32_t> used = slots.first(tokens.size());
    const auto fill = [&](int32_t padding, auto &&value) -> std::span<const int32_t> {
        std::ranges::fill(slots.subspan(used.size()), padding);
        for (size_t i = 0; i < used.size(); ++i) used[i] = value(i);
        return slots;
    };
    const auto count = static_cast<int32_t>(tokens.size());
    const auto position = [&](size_t i) { return first + static_cast<int32_t>(i); };
    if (input == io::k_tokens) return fill(0, [&](size_t i) { return tokens[i]; });
    if (input == io::k_pos) return fill(0, position);
    if (input == io::k_seq) return fill(-1, [](size_t) { return 0; });
    if (input == io::k_cache_row) return fill(-1, position);
    if (input == io::k_blocks) return std::span(blocks_).first(static_cast<size_t>(key.capacity / k_cache_block_rows));
    if (input == io::k_kv_start) return word(0);
    if (input == io::k_kv_len) return word(first + count);
    return word(count - 1);  // out_rows
}

}  // namespace tenon::llm
