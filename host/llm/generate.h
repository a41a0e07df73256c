// The loop that writes text: sample, show, feed, until something ends it. Allocates nothing once it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "llm/engine.h"
#include "llm/sampler.h"
#include "tenon/status.h"

namespace tenon::llm {

struct GenerateOptions {
    int64_t max_tokens = INT64_MAX;
    std::vector<std::string> stops;  // text ends before the first of these
    /// Don't end at a token that ends a generation. The sampler should have them banned (see end_tokens).
    bool ignore_end = false;
};

/// Why a generation ended.
enum class StopReason { end_of_generation, stop_string, max_tokens, context_full, cancelled };
/// "end of generation", "stop string" and so on.
std::string_view stop_name(StopReason reason) noexcept;

struct Generated {
    StopReason reason = StopReason::max_tokens;
    int64_t tokens = 0;  // sampled, one that ended the generation not counted
    /// From the first token's being sampled to the last one's; 0 for fewer than two. `tokens` - 1 runs lie in it.
    std::chrono::nanoseconds time{0};
};

/// Called after each token with the text that can be shown since the last call, which may be empty, and once more at
/// the end with what was held back. A failure ends the generation with it.
using TextSink = std::function<Status(std::string_view text)>;

/// Generates from where the engine stands: its logits() must be there. The sampler is told of each token; of those of
/// the prompt it should have been told before. A token that ends a generation isn't shown, other control tokens
/// neither. A raised cancel token ends it too, and isn't a failure here: what was shown till then is well-formed text.
Result<Generated> generate(Engine &engine, Sampler &sampler, const GenerateOptions &options, const TextSink &sink,
                           uint64_t cancel_token = 0);

/// The tokens that end a generation, for SamplerOptions::banned.
std::vector<int32_t> end_tokens(const Tokenizer &tokenizer);

}  // namespace tenon::llm
