// Runs a loaded model over one sequence: feeds tokens in buckets, keeps account of the KV cache, and answers logits.
// The plans for single tokens are made at the start, those for buckets of a prompt when a prompt first needs them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "llm/buckets.h"
#include "llm/model.h"
#include "llm/step_inputs.h"
#include "tenon/session.h"
#include "tenon/status.h"

namespace tenon::llm {

/// One sequence. One thread. After a failure or a cancelled call the tokens of runs that were seen to end count, the
/// others don't, and the engine stays usable.
class Engine {
public:
    /// Prepares all plans that feeding single tokens can need, so that doing so never prepares or allocates anything;
    /// before them those for a first prompt of `prompt_tokens` tokens (0: none is known yet), which feed() would have
    /// to make otherwise. A longer prompt later may cost each of the single tokens' plans one binding to larger memory.
    /// `progress` is told of each plan.
    static Result<std::unique_ptr<Engine>> create(std::unique_ptr<Session> session, std::unique_ptr<Model> model,
                                                  int64_t prompt_tokens = 0, const LoadProgress &progress = {});
    Engine(const Engine &) = delete;
    Engine &operator=(const Engine &) = delete;

    const Model &model() const { return *model_; }
    const Session &session() const { return *session_; }
    /// For tools that run other graphs over the model's tensors: truncate(0) comes before the next feed.
    Session &session() { return *session_; }
    int64_t length() const { return length_; }  // tokens in the cache
    int64_t context() const { return model_->context(); }

    /// Appends tokens; logits() then speaks of the token after the last. invalid_argument: no tokens, an id outside the
    /// vocabulary, more tokens than fit. cancelled: the token (of Registry::new_cancel_token) was raised.
    Status feed(std::span<const int32_t> tokens, uint64_t cancel_token = 0);

    /// The same, and hands `sink` the logits after each of the tokens in turn, with the token's index in `tokens`. A
    /// failure of the sink ends it.
    using LogitsSink = std::function<Status(size_t index, std::span<const float> logits)>;
    Status feed_each(std::span<const int32_t> tokens, const LogitsSink &sink, uint64_t cancel_token = 0);

    /// Logits [tokenizer's vocabulary] for the token that follows the last one fed; empty before any. Rows of the
    /// embedding behind the vocabulary are padding, no token: they are cut off. Valid until the next call that isn't
    /// const.
    std::span<const float> logits() const { return logits_; }

    /// Forgets all tokens from position `length` on, which is at most length().
    void truncate(int64_t length);

private:
    /// A graph made ready, and its inputs as io::k_inputs has them: k_no_value where it has none of a kind.
    struct Step {
        GraphKey key;
        std::shared_ptr<Executable> executable;
        std::array<ValueId, io::k_inputs.size()> inputs;
        ValueId output;
    };

    Engine(std::unique_ptr<Session> session, std::unique_ptr<Model> model);
    Status prepare(int64_t prompt_tokens, const LoadProgress &progress);
    Status check(std::span<const int32_t> tokens) const;
    std::span<const float> logits_of(size_t row) const;
    int64_t capacity_for(int64_t positions) const;
    Result<Step *> step(int64_t bucket, int64_t rows, int64_t positions);
    Status feed_chunks(std::span<const int32_t> tokens, uint64_t cancel_token);
    Status run(Step &step, std::span<const int32_t> tokens, uint64_t cancel_token);
    Status write(Step &step, std::span<const int32_t> tokens);
    Status read_logits(Step &step, int64_t rows);

    // In the order in which they are needed: executables refer to the session, tensors to the model's file.
    std::unique_ptr<Model> model_;
    std::unique_ptr<Session> session_;
    std::map<GraphKey, Step> steps_;

    std::vector<int64_t> capacities_;  // with plans of their own, rising; the last is the whole cache
    StepInputs inputs_;
    std::vector<float> logits_memory_;  // where logits are read to if the CPU can't see them
    std::span<const float> rows_;       // logits of the last run, all its rows, padding included
    std::span<const float> logits_;
    int64_t length_ = 0;
};

}  // namespace tenon::llm
