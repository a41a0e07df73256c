// tenon score MODEL: what a model makes of a text, for other programs to read.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cmd/command.h"
#include "cmd/support/engine_options.h"
#include "cmd/support/input.h"
#include "cmd/support/interrupt.h"
#include "cmd/support/options.h"
#include "cmd/support/output.h"
#include "cmd/support/registry_options.h"
#include "llm/gguf_text.h"
#include "llm/score.h"

namespace tenon::cmd {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
    EngineChoice engine;
    TextSource source;
    int64_t top = 10, greedy = 0;
    bool positions = false, json = false;
};

std::optional<int> parse(std::span<const std::string> args, Request &request) {
    Options options(
        "score", "Tells how likely a model finds a text, and what it would say next",
        "The text is taken as it is: no chat template, special tokens in it are recognised, a BOS is put in front only "
        "where the file says so. JSON: one object with tokens (ids), mean_nll (mean negative log likelihood, natural "
        "logarithm, of the tokens after the first; null for one token), top ([id, logit], highest first), greedy (ids) "
        "and, if asked for, positions ([likeliest id to follow, NLL of the one that does], null for the last).");
    add_engine_options(options, request.engine);
    add_text_options(options, request.source);
    options.integer("top", "K", "show the K likeliest tokens to follow", 0, INT64_MAX, request.top)
        .integer("greedy", "N", "continue with N tokens, always the likeliest", 0, 1 << 29, request.greedy)
        .flag("positions", "show every token's likelihood", request.positions)
        .flag("json", "print one JSON object", request.json);
    return options.parse(args);
}

struct Scored {
    std::shared_ptr<const llm::Tokenizer> tokenizer;
    std::vector<int32_t> tokens;
    llm::Score score;
};

Result<Scored> compute(const Request &request, std::vector<Pin> pins) {
    Scored scored;
    TENON_ASSIGN(const std::string text, read_text(request.source));
    TENON_ASSIGN(llm::ModelFile file, llm::ModelFile::open(request.engine.model));
    scored.tokenizer = file.tokenizer;
    TENON_ASSIGN(scored.tokens, file.tokenizer->encode(text));
    if (scored.tokens.empty()) return Status::invalid_argument("the text is empty: there is nothing to score");
    // The last token of the continuation is chosen, but not fed.
    const int64_t more = std::max<int64_t>(0, request.greedy - 1);
    TENON_TRY(check_context(request.engine, file, scored.tokens.size(), more).status());
    TENON_ASSIGN(auto registry, make_registry(request.engine.plugin_dirs));
    const Interrupt interrupt(registry);
    const auto progress = [](std::string_view, uint64_t, uint64_t) {
        return Interrupt::raised() ? Status(Code::cancelled, "interrupted while loading") : Status();
    };
    TENON_ASSIGN(auto engine, start_engine(registry, request.engine, std::move(pins), std::move(file), 0, progress));
    TENON_ASSIGN(scored.score, llm::score(*engine, scored.tokens, request.top, request.greedy, interrupt.token()));
    return scored;
}

Json number(std::optional<double> value) {
    return value ? Json(*value) : Json(nullptr);
}

Json to_json(const Scored &scored, bool with_positions) {
    Json top = Json::array();
    // As double every float has digits enough to be read back to the same bits.
    for (const auto &[id, logit] : scored.score.top) top.push_back({id, static_cast<double>(logit)});
    Json out{{"tokens", scored.tokens},
             {"mean_nll", number(scored.score.mean_nll)},
             {"top", std::move(top)},
             {"greedy", scored.score.greedy}};
    if (with_positions) {
        Json &positions = out["positions"] = Json::array();
        for (const auto &[id, nll] : scored.score.positions) positions.push_back({id, number(nll)});
    }
    return out;
}

void print_text(Output &out, const Scored &scored, bool with_positions) {
    const llm::Tokenizer &tokenizer = *scored.tokenizer;
    const auto piece = [&](int32_t id) { return llm::escaped(tokenizer.piece(id), 200); };
    const llm::Score &score = scored.score;
    if (with_positions) {
        out.print("{:>8} {:>9}  {}\n", "id", "NLL", "token");
        for (size_t i = 0; i < scored.tokens.size(); ++i) {
            // The first token follows nothing: no likelihood.
            const std::string nll = i > 0 ? fmt::format("{:.4f}", score.positions[i - 1].nll.value_or(0)) : "";
            out.print("{:>8} {:>9}  {}\n", scored.tokens[i], nll, piece(scored.tokens[i]));
        }
        out.print("\n");
    }
    out.print("{} tokens", scored.tokens.size());
    if (score.mean_nll) out.print(", mean NLL {:.4f}, perplexity {:.4f}", *score.mean_nll, std::exp(*score.mean_nll));
    out.print("\n");
    if (!score.top.empty()) out.print("\n{:>8} {:>9}  {}\n", "id", "logit", "likeliest to follow");
    for (const auto &[id, logit] : score.top) out.print("{:>8} {:>9.4f}  {}\n", id, logit, piece(id));
    if (score.greedy.empty()) return;
    out.print("\nGreedy continuation: ");
    for (const int32_t id : score.greedy) out.print("{}", piece(id));
    out.print("\n");
}

int run(std::span<const std::string> args) {
    Request request;
    if (auto exit_code = parse(args, request)) return *exit_code;
    Result<std::vector<Pin>> pins = parse_pins(request.engine);
    if (!pins.ok()) return usage_error("score", pins.status().message());
    Result<Scored> scored = compute(request, *std::move(pins));
    if (!scored.ok()) return fail("score", scored.status());
    Output out("score");
    if (request.json) {
        out.write(json_text(to_json(*scored, request.positions)) + "\n");
    } else {
        print_text(out, *scored, request.positions);
    }
    return out.finish();
}

}  // namespace

extern const Command command_score;
const Command command_score{"score", "tell how likely a model finds a text", run};

}  // namespace tenon::cmd
