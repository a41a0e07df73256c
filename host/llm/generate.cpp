#include "llm/generate.h"

#include <optional>

#include "llm/text_stream.h"

namespace tenon::llm {
namespace {

using Clock = std::chrono::steady_clock;

/// Shows tokens and tells when the text must end.
class Writer {
public:
    Writer(const Tokenizer &tokenizer, const GenerateOptions &options, const TextSink &sink)
        : tokenizer_(tokenizer), sink_(sink), stream_(options.stops, tokenizer.max_piece_bytes()) {
        piece_.reserve(tokenizer.max_piece_bytes());
    }

    Status show(int32_t id) {
        piece_.clear();
        if (!tokenizer_.is_control(id)) tokenizer_.append_piece(id, piece_);
        return sink_(stream_.push(piece_));
    }
    bool stopped() const { return stream_.stopped(); }
    Status finish() { return sink_(stream_.finish()); }

private:
    const Tokenizer &tokenizer_;
    const TextSink &sink_;
    TextStream stream_;
    std::string piece_;
};

/// Why nothing is to follow the last token shown; nothing where the text goes on.
std::optional<StopReason> stop_after(const Engine &engine, const Writer &writer, const GenerateOptions &options,
                                     int64_t tokens) {
    if (writer.stopped()) return StopReason::stop_string;
    if (tokens >= options.max_tokens) return StopReason::max_tokens;
    if (engine.length() >= engine.context()) return StopReason::context_full;
    return std::nullopt;
}

Result<Generated> loop(Engine &engine, Sampler &sampler, const GenerateOptions &options, Writer &writer,
                       uint64_t cancel_token) {
    const Tokenizer &tokenizer = engine.model().tokenizer();
    Generated done;
    Clock::time_point first{};
    while (done.tokens < options.max_tokens) {
        TENON_ASSIGN(const int32_t id, sampler.sample(engine.logits()));
        if (done.tokens == 0) first = Clock::now();
        if (!options.ignore_end && tokenizer.is_end_of_generation(id)) {
            done.reason = StopReason::end_of_generation;
            return done;
        }
        sampler.accept(id);
        done.time = Clock::now() - first;
        ++done.tokens;
        TENON_TRY(writer.show(id));
        if (const auto reason = stop_after(engine, writer, options, done.tokens)) {
            done.reason = *reason;
            return done;
        }
        if (Status status = engine.feed({&id, 1}, cancel_token); !status.ok()) {
            if (status.code() != Code::cancelled) return status;
            done.reason = StopReason::cancelled;
            return done;
        }
    }
    return done;
}

}  // namespace

std::string_view stop_name(StopReason reason) noexcept {
    switch (reason) {
        case StopReason::end_of_generation: return "end of generation";
        case StopReason::stop_string: return "stop string";
        case StopReason::max_tokens: return "max tokens";
        case StopReason::context_full: return "context full";
        case StopReason::cancelled: return "cancelled";
    }
    return "unknown";
}

std::vector<int32_t> end_tokens(const Tokenizer &tokenizer) {
    const auto ids = tokenizer.vocabulary().end_of_generation();
    return {ids.begin(), ids.end()};
}

Result<Generated> generate(Engine &engine, Sampler &sampler, const GenerateOptions &options, const TextSink &sink,
                           uint64_t cancel_token) {
    if (engine.logits().empty()) return Status::invalid_state("nothing was fed that a text could go on from");
    Writer writer(engine.model().tokenizer(), options, sink);
    Result<Generated> done = loop(engine, sampler, options, writer, cancel_token);
    // Also after a failure: half a character held back is told as such, and no stop string can be completed any more.
    if (Status status = writer.finish(); !status.ok() && done.ok()) return status;
    return done;
}

}  // namespace tenon::llm
