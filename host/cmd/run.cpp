// tenon run MODEL: reads a prompt, answers with the model's text as it comes.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "cmd/command.h"
#include "cmd/support/engine_options.h"
#include "cmd/support/input.h"
#include "cmd/support/interrupt.h"
#include "cmd/support/options.h"
#include "cmd/support/output.h"
#include "cmd/support/progress.h"
#include "cmd/support/registry_options.h"
#include "llm/chat_template.h"
#include "llm/generate.h"

namespace tenon::cmd {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

struct Request {
    EngineChoice engine;
    TextSource source;
    std::optional<int64_t> tokens;
    llm::SamplerOptions sampling;
    int64_t top_k = llm::SamplerOptions{}.top_k;
    std::optional<int64_t> seed;
    std::vector<std::string> stops;
    bool ignore_eos = false, raw = false, stats = false, quiet = false;
};

std::optional<int> parse(std::span<const std::string> args, Request &request) {
    Options options(
        "run", "Generates the text that follows a prompt, on stdout, as it comes",
        "The prompt is put into the model's chat template if it has one, as one message of the user; "
        "--raw takes it as it is. "
        "Text ends where the model ends it, after -n tokens, or when the context is full. "
        "Of the tokens that can follow, --top-k, --top-p and --min-p cut in that order, then one is drawn at the "
        "temperature. "
        "Progress and a closing line with times go to stderr. Ctrl-C ends the text; pressed twice, the program.");
    add_engine_options(options, request.engine);
    add_text_options(options, request.source);
    llm::SamplerOptions &s = request.sampling;
    options.integer("tokens,n", "N", "generate at most N tokens", 0, 1 << 30, request.tokens)
        .number("temp", "T", "temperature; 0 always takes the likeliest token", 0, 1e6, s.temperature)
        .integer("top-k", "K", "draw from the K likeliest tokens; 0: from all", 0, 1 << 30, request.top_k)
        .number("top-p", "P", "draw from the likeliest tokens that have probability P together; 1: from all", 0, 1,
                s.top_p)
        .number("min-p", "P", "draw from tokens with at least P times the likeliest one's probability; 0: from all", 0,
                1, s.min_p)
        .number("repeat-penalty", "R", "make tokens of the last 64 less likely; 1: don't", 0, 1e6, s.repeat_penalty)
        .integer("seed", "S", "the same seed draws the same tokens; without it each run differs", 0, INT64_MAX,
                 request.seed)
        .texts("stop", "TEXT", "end before TEXT", request.stops)
        .flag("ignore-eos", "never let the model end the text", request.ignore_eos)
        .flag("raw", "take the prompt as it is, without a chat template", request.raw)
        .flag("stats", "print what the run made and used, as one line of JSON on stderr", request.stats)
        .flag("quiet,q", "no progress and no closing line on stderr", request.quiet);
    return options.parse(args);
}

double seconds(Clock::duration time) {
    return std::chrono::duration<double>(time).count();
}
double rate(int64_t count, double in_seconds) {
    return in_seconds > 0 ? static_cast<double>(count) / in_seconds : 0;
}

bool same_file(int a, int b) {
    struct stat of_a {
    }, of_b{};
    return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/// The text as the model is to see it, in tokens.
Result<std::vector<int32_t>> make_prompt(const Request &request, const llm::ModelFile &file, std::string text) {
    const bool typed = !request.source.prompt;
    if (typed && text.ends_with('\n')) text.pop_back();  // ends the line, not the prompt
    llm::EncodeOptions encode;
    if (!request.raw) {
        TENON_ASSIGN(const auto chat, llm::ChatTemplate::from_gguf(*file.gguf));
        if (chat) {
            const llm::ChatMessage message{"user", std::move(text)};
            text = chat->render({&message, 1}, true);
            encode.add_special = !chat->writes_bos();
        }
    }
    TENON_ASSIGN(auto tokens, file.tokenizer->encode(text, encode));
    if (!tokens.empty()) return tokens;
    if (const auto bos = file.tokenizer->bos()) return std::vector<int32_t>{*bos};
    return Status::invalid_argument("the prompt is empty, and the model has no BOS token to begin a text with");
}

/// What the session and the plugins had made at one moment.
struct Snapshot {
    SessionCounters session;
    Registry::HostMemory plugins;
};

Json to_json(const Snapshot &s) {
    return {{"schedules", s.session.schedules},
            {"plans", s.session.plans},
            {"buffers", s.session.buffers},
            {"buffer_bytes", s.session.buffer_bytes},
            {"binds", s.session.binds},
            {"runs", s.session.runs},
            {"copies", s.session.copies},
            {"copied_bytes", s.session.copied_bytes},
            {"plugin_allocations", s.plugins.allocations},
            {"plugin_bytes_now", s.plugins.bytes_now},
            {"plugin_bytes_peak", s.plugins.bytes_peak}};
}

/// One run of the command, from prompt to closing line.
class Run {
public:
    Run(const Request &request, std::vector<Pin> pins) : request_(request), pins_(std::move(pins)) {}

    int execute() {
        Result<std::string> text = read_text(request_.source);
        if (!text.ok()) return fail("run", text.status());
        if (Status status = load(*std::move(text)); !status.ok()) return fail("run", status);
        Status status = answer();
        const bool cancelled = status.code() == Code::cancelled || done_.reason == llm::StopReason::cancelled;
        if (!out_.ok()) return out_.finish();  // no reader, no text: not the model's failure
        if (::isatty(STDOUT_FILENO) && !ends_line_) out_.write("\n");
        const int exit_code = out_.finish(cancelled ? k_interrupted : k_done);
        if (!status.ok() && !cancelled) return fail("run", status);
        // Where both streams end in one place, the closing line must not stand behind the text's last words.
        if (!ends_line_ && same_file(STDOUT_FILENO, STDERR_FILENO) && !::isatty(STDOUT_FILENO))
            std::fputc('\n', stderr);
        if (!request_.quiet) close_with_times();
        if (request_.stats) print_stats();
        return exit_code;
    }

private:
    Status load(std::string text) {
        const Clock::time_point start = Clock::now();
        TENON_ASSIGN(llm::ModelFile file, llm::ModelFile::open(request_.engine.model));
        TENON_ASSIGN(prompt_, make_prompt(request_, file, std::move(text)));
        TENON_ASSIGN(const int64_t context, check_context(request_.engine, file, prompt_.size(), 0));
        warn_of(context, file);
        TENON_ASSIGN(registry_, make_registry(request_.engine.plugin_dirs));
        interrupt_.emplace(registry_);
        ProgressBar bar(!request_.quiet);
        const auto progress = [&](std::string_view stage, uint64_t done, uint64_t total) {
            if (Interrupt::raised()) return Status(Code::cancelled, "interrupted while loading");
            bar.update(stage, done, total);
            return Status();
        };
        TENON_ASSIGN(engine_, start_engine(registry_, request_.engine, std::move(pins_), std::move(file),
                                           static_cast<int64_t>(prompt_.size()), progress));
        load_time_ = Clock::now() - start;
        return {};
    }

    void warn_of(int64_t context, const llm::ModelFile &file) const {
        const int64_t trained = file.architecture->shape().context_length;
        if (context <= trained || request_.quiet) return;
        fmt::print(stderr,
                   "tenon run: the context of {} tokens is longer than the {} that the model was trained for: "
                   "the text may fall apart behind them\n",
                   context, trained);
    }

    Status answer() {
        llm::SamplerOptions sampling = request_.sampling;
        sampling.seed = seed_ = request_.seed ? static_cast<uint64_t>(*request_.seed) : std::random_device{}();
        const llm::Tokenizer &tokenizer = engine_->model().tokenizer();
        if (request_.ignore_eos) sampling.banned = llm::end_tokens(tokenizer);
        TENON_ASSIGN(llm::Sampler sampler, llm::Sampler::create(sampling, tokenizer.vocabulary_size()));
        for (const int32_t id : prompt_) sampler.accept(id);
        const llm::GenerateOptions options{.max_tokens = request_.tokens.value_or(INT64_MAX),
                                           .stops = request_.stops,
                                           .ignore_end = request_.ignore_eos};
        const Clock::time_point start = Clock::now();
        TENON_TRY(engine_->feed(prompt_, interrupt_->token()));
        prompt_time_ = Clock::now() - start;
        at_first_token_ = snapshot();
        TENON_ASSIGN(done_, llm::generate(
                                *engine_, sampler, options, [&](std::string_view shown) { return show(shown); },
                                interrupt_->token()));
        at_end_ = snapshot();
        return {};
    }

    Status show(std::string_view text) {
        if (text.empty()) return {};
        ends_line_ = text.ends_with('\n');
        if (out_.write(text) && out_.flush()) return {};
        return Status::internal("the text can't be written");  // told by Output in its own words
    }

    Snapshot snapshot() const { return {engine_->session().counters(), registry_->host_memory()}; }

    void close_with_times() const {
        if (done_.reason == llm::StopReason::context_full)
            fmt::print(stderr, "tenon run: the context of {} tokens is full; --ctx N makes it larger\n",
                       engine_->context());
        const double generating = seconds(done_.time), prompting = seconds(prompt_time_);
        std::string line =
            fmt::format("load {:.2f} s | prompt {} tokens, {:.1f} tokens/s | generated {} tokens", seconds(load_time_),
                        prompt_.size(), rate(static_cast<int64_t>(prompt_.size()), prompting), done_.tokens);
        if (done_.tokens > 1) line += fmt::format(", {:.1f} tokens/s", rate(done_.tokens - 1, generating));
        if (done_.reason == llm::StopReason::cancelled) line += " | interrupted";
        fmt::print(stderr, "{}\n", line);
    }

    void print_stats() const {
        const llm::ModelMemory &memory = engine_->model().memory();
        const double generating = seconds(done_.time), prompting = seconds(prompt_time_);
        Json devices = Json::array();
        for (const auto &device : engine_->session().devices()) devices.push_back(device->name());
        const Snapshot &first = at_first_token_, &end = at_end_;
        const Json stats{{"devices", devices},
                         {"context", engine_->context()},
                         {"seed", seed_},
                         {"load_s", seconds(load_time_)},
                         {"prompt_tokens", prompt_.size()},
                         {"prompt_s", prompting},
                         {"prompt_tokens_per_s", rate(static_cast<int64_t>(prompt_.size()), prompting)},
                         {"generated_tokens", done_.tokens},
                         {"generated_s", generating},
                         {"generated_tokens_per_s", rate(std::max<int64_t>(0, done_.tokens - 1), generating)},
                         {"end", llm::stop_name(done_.reason)},
                         {"weights_mapped_bytes", memory.mapped_bytes},
                         {"weights_copied_bytes", memory.copied_bytes},
                         {"weights_read_per_token_bytes", memory.bytes_read_per_token},
                         {"cache_bytes", memory.cache_bytes},
                         {"at_first_token", to_json(first)},
                         {"at_end", to_json(end)},
                         {"after_first_token",
                          {{"plans", end.session.plans - first.session.plans},
                           {"buffers", end.session.buffers - first.session.buffers},
                           {"binds", end.session.binds - first.session.binds},
                           {"plugin_allocations", end.plugins.allocations - first.plugins.allocations}}}};
        fmt::print(stderr, "{}\n", json_text(stats));
    }

    const Request &request_;
    std::vector<Pin> pins_;
    Output out_{"run"};
    bool ends_line_ = true;
    std::vector<int32_t> prompt_;
    std::shared_ptr<Registry> registry_;
    std::optional<Interrupt> interrupt_;
    std::unique_ptr<llm::Engine> engine_;
    uint64_t seed_ = 0;
    llm::Generated done_;
    Clock::duration load_time_{}, prompt_time_{};
    Snapshot at_first_token_, at_end_;
};

int run(std::span<const std::string> args) {
    Request request;
    if (auto exit_code = parse(args, request)) return *exit_code;
    request.sampling.top_k = static_cast<int32_t>(request.top_k);
    if (const Status status = llm::check(request.sampling); !status.ok()) return usage_error("run", status.message());
    if (!request.source.prompt && !request.source.file && ::isatty(STDIN_FILENO))
        return usage_error("run", "no prompt: give it with -p TEXT, with -f FILE, or through a pipe");
    Result<std::vector<Pin>> pins = parse_pins(request.engine);
    if (!pins.ok()) return usage_error("run", pins.status().message());
    return Run(request, *std::move(pins)).execute();
}

}  // namespace

extern const Command command_run;
const Command command_run{"run", "generate text that follows a prompt", run};

}  // namespace tenon::cmd
