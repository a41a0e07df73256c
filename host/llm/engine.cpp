#include "llm/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>

namespace tenon::llm {
namespace {

/// Bytes of logits that feed_each holds at a time, and the most rows that it is worth computing at once.
constexpr int64_t k_logits_bytes = 16 << 20, k_logits_rows = 64;

int64_t rows_at_once(int64_t vocabulary) {
    const int64_t fit = k_logits_bytes / (vocabulary * int64_t{sizeof(float)});
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(fit, 1, k_logits_rows))));
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::create(std::unique_ptr<Session> session, std::unique_ptr<Model> model,
                                               int64_t prompt_tokens, const LoadProgress &progress) {
    std::unique_ptr<Engine> engine(new Engine(std::move(session), std::move(model)));
    TENON_TRY(engine->prepare(prompt_tokens, progress));
    return engine;
}

Engine::Engine(std::unique_ptr<Session> session, std::unique_ptr<Model> model)
    : model_(std::move(model)), session_(std::move(session)), inputs_(k_max_bucket, model_->key(1, 1).cache_rows) {
    capacities_ = {model_->key(1, 1).cache_rows};
}

Status Engine::prepare(int64_t prompt_tokens, const LoadProgress &progress) {
    // A device that claims attention works in proportion to the tokens that are there; a decomposition pays for the
    // capacity, and so gets plans for smaller ones.
    if (model_->capacity_matters()) capacities_ = capacity_buckets(k_cache_block_rows, model_->key(1, 1).cache_rows);
    const std::vector<Chunk> chunks = split_tokens(std::min(prompt_tokens, context()));
    const uint64_t total = chunks.size() + capacities_.size();
    uint64_t made = 0;
    const auto report = [&] { return progress ? progress("preparing", made, total) : Status(); };
    const auto make = [&](int64_t bucket, int64_t rows, int64_t positions) -> Status {
        TENON_TRY(step(bucket, rows, positions).status());
        ++made;
        return report();
    };
    TENON_TRY(report());
    // The largest first: when the session's memory grows later, what was prepared before has to be bound anew.
    int64_t done = 0;
    for (const Chunk &chunk : chunks) {
        done += chunk.tokens;
        TENON_TRY(make(chunk.bucket, done == prompt_tokens ? 1 : 0, done));
    }
    for (auto capacity = capacities_.rbegin(); capacity != capacities_.rend(); ++capacity)
        TENON_TRY(make(1, 1, *capacity));
    return {};
}

int64_t Engine::capacity_for(int64_t positions) const {
    const auto fits = std::ranges::lower_bound(capacities_, positions);
    return fits == capacities_.end() ? capacities_.back() : *fits;
}

Result<Engine::Step *> Engine::step(int64_t bucket, int64_t rows, int64_t positions) {
    GraphKey key = model_->key(bucket, rows);
    key.capacity = capacity_for(positions);
    if (const auto found = steps_.find(key); found != steps_.end()) return &found->second;
    TENON_ASSIGN(const Graph graph, model_->architecture().build(key));
    Step made;
    made.key = key;
    TENON_ASSIGN(made.executable, session_->prepare(graph, model_->tensors()));
    std::ranges::transform(io::k_inputs, made.inputs.begin(), [&](std::string_view name) { return graph.find(name); });
    made.output = graph.outputs().empty() ? k_no_value : graph.outputs().front();
    return &steps_.emplace(key, std::move(made)).first->second;
}

Status Engine::check(std::span<const int32_t> tokens) const {
    if (tokens.empty()) return Status::invalid_argument("there are no tokens to feed");
    const auto more = static_cast<int64_t>(tokens.size());
    if (more > context() - length_)
        return Status::invalid_argument(
            fmt::format("{} tokens don't fit: the context holds {}, of which {} are in use", more, context(), length_));
    const int32_t vocabulary = model_->tokenizer().vocabulary_size();
    for (const int32_t id : tokens)
        if (id < 0 || id >= vocabulary)
            return Status::invalid_argument(fmt::format("token {} isn't in the vocabulary of {}", id, vocabulary));
    return {};
}

/// Of one row of the last run; ModelFile::open saw that no row is shorter than the vocabulary.
std::span<const float> Engine::logits_of(size_t row) const {
    const auto width = static_cast<size_t>(model_->shape().vocabulary);
    return rows_.subspan(row * width, static_cast<size_t>(model_->tokenizer().vocabulary_size()));
}

Status Engine::feed(std::span<const int32_t> tokens, uint64_t cancel_token) {
    TENON_TRY(check(tokens));
    logits_ = {};
    if (tokens.size() == 1) {  // the steady loop: what split_tokens would say, without its list
        TENON_ASSIGN(Step * single, step(1, 1, length_ + 1));
        TENON_TRY(run(*single, tokens, cancel_token));
    } else {
        TENON_TRY(feed_chunks(tokens, cancel_token));
    }
    logits_ = logits_of(0);
    return {};
}

/// As many chunks in flight as the session has slots: a device can work on the next one while others finish the last.
Status Engine::feed_chunks(std::span<const int32_t> tokens, uint64_t cancel_token) {
    struct Flying {
        Run run;
        int64_t length;  // tokens in the cache once it has ended
    };
    std::deque<Flying> flying;
    int64_t ended = length_;
    const auto finish_first = [&]() -> Status {
        const Flying first = flying.front();
        flying.pop_front();
        TENON_TRY(session_->wait(first.run));
        ended = first.length;
        return {};
    };
    const auto feed_all = [&]() -> Status {
        Step *last = nullptr;
        for (const Chunk &chunk : split_tokens(static_cast<int64_t>(tokens.size()))) {
            const auto count = static_cast<size_t>(chunk.tokens);
            TENON_ASSIGN(last, step(chunk.bucket, count == tokens.size() ? 1 : 0, length_ + chunk.tokens));
            if (flying.size() == session_->slots()) TENON_TRY(finish_first());
            TENON_TRY(write(*last, tokens.first(count)));
            TENON_ASSIGN(const Run run, session_->submit(*last->executable, cancel_token));
            length_ += chunk.tokens;
            flying.push_back({run, length_});
            tokens = tokens.subspan(count);
        }
        while (!flying.empty()) TENON_TRY(finish_first());
        return read_logits(*last, 1);
    };
    Status status = feed_all();
    if (!status.ok()) {
        (void)session_->synchronize();  // whatever it says follows from the first failure
        length_ = ended;
    }
    return status;
}

Status Engine::feed_each(std::span<const int32_t> tokens, const LogitsSink &sink, uint64_t cancel_token) {
    TENON_TRY(check(tokens));
    logits_ = {};
    size_t index = 0;
    for (const Chunk &chunk :
         split_tokens(static_cast<int64_t>(tokens.size()), rows_at_once(model_->shape().vocabulary))) {
        const auto count = static_cast<size_t>(chunk.tokens);
        TENON_ASSIGN(Step * next, step(chunk.bucket, chunk.bucket, length_ + chunk.tokens));
        TENON_TRY(run(*next, tokens.subspan(index, count), cancel_token));
        for (size_t row = 0; row < count; ++row) {
            logits_ = logits_of(row);
            TENON_TRY(sink(index++, logits_));
        }
    }
    return {};
}

Status Engine::run(Step &step, std::span<const int32_t> tokens, uint64_t cancel_token) {
    TENON_TRY(write(step, tokens));
    TENON_TRY(session_->run(*step.executable, cancel_token));
    if (step.output != k_no_value) {
        const Shape &shape = step.executable->schedule().graph().values()[step.output].shape;
        TENON_TRY(read_logits(step, shape[0]));
    }
    length_ += static_cast<int64_t>(tokens.size());
    return {};
}

Status Engine::write(Step &step, std::span<const int32_t> tokens) {
    return inputs_.each(step.key, tokens, length_, [&](size_t input, std::span<const int32_t> words) -> Status {
        if (step.inputs[input] == k_no_value) return {};
        return session_->input_write(*step.executable, step.inputs[input], std::as_bytes(words));
    });
}

Status Engine::read_logits(Step &step, int64_t rows) {
    const size_t count = static_cast<size_t>(rows * model_->shape().vocabulary);
    if (const std::byte *seen = session_->peek(*step.executable, step.output)) {
        rows_ = {reinterpret_cast<const float *>(seen), count};
        return {};
    }
    if (logits_memory_.size() < count) logits_memory_.resize(count);
    const std::span<float> to = std::span(logits_memory_).first(count);
    TENON_TRY(session_->read(*step.executable, step.output, std::as_writable_bytes(to)));
    rows_ = to;
    return {};
}

void Engine::truncate(int64_t length) {
    length_ = std::clamp<int64_t>(length, 0, length_);
    logits_ = {};
}

}  // namespace tenon::llm
