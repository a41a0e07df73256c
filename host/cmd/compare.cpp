// tenon compare MODEL: what a device computes against what another does, node by node.
#include <fmt/format.h>

#include <algorithm>
#include <map>
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
#include "tenon/compare.h"

namespace tenon::cmd {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view k_text = "A tenon is the end of a beam, cut to fit the mortise of another.";

struct Request {
    EngineChoice engine;
    std::string against;
    TextSource source;
    bool all = false, json = false;
};

std::optional<int> parse(std::span<const std::string> args, Request &request) {
    Options options(
        "compare", "Compares what devices compute with what others do, node by node",
        "Runs the model over a text, and over one token more, on both. Each node of --device gets what --against "
        "computed before it, so that it answers for its own error alone: NMSE, the error's energy over the "
        "reference's, must be within the limit of its op. The logits of an ordinary run of each are compared too, "
        "without a limit. Exit code 1 if any node is over its limit. --pin, --offload and --threads are for --device.");
    add_engine_options(options, request.engine);
    add_text_options(options, request.source);
    options.text("against", "LIST", "the reference: devices, written as for --device", request.against)
        .flag("all", "show every node, not only the worst of each op", request.all)
        .flag("json", "print one JSON object, with every node", request.json);
    return options.parse(args);
}

/// One output of one node, in words that outlive the graph.
struct Line {
    size_t run = 0;
    std::string node, op;
    NodeDifference found;
};

bool is_over(const Line &line) {
    return !line.found.within();
}

struct Compared {
    std::shared_ptr<const llm::Tokenizer> tokenizer;
    size_t tokens = 0;          // of the text
    std::vector<int64_t> runs;  // tokens of each: the text in pieces, and one more
    std::vector<Line> lines;
    Difference logits;
    int32_t top = 0, expected_top = 0;  // likeliest tokens to follow the text
};

class Comparer {
public:
    Comparer(const Request &request, std::vector<Pin> pins) : request_(request), pins_(std::move(pins)) {}

    Result<Compared> run() {
        TENON_TRY(start());
        TENON_TRY(compare_logits());
        for (llm::Engine *engine : {tested_.get(), reference_.get()}) TENON_TRY(clear_caches(*engine));
        const llm::GraphKey whole = reference_->model().key(1, 1);
        llm::StepInputs inputs(llm::k_max_bucket, whole.cache_rows);
        int64_t first = 0;
        for (const llm::Chunk &chunk : llm::split_tokens(static_cast<int64_t>(tokens_.size()))) {
            const auto part = std::span(tokens_).subspan(static_cast<size_t>(first), static_cast<size_t>(chunk.tokens));
            TENON_TRY(compare_run(inputs, part, first, chunk.bucket));
            first += chunk.tokens;
        }
        TENON_TRY(compare_run(inputs, {&compared_.expected_top, 1}, first, 1));
        return std::move(compared_);
    }

private:
    Status start() {
        std::string text(k_text);
        if (request_.source.prompt || request_.source.file) {
            TENON_ASSIGN(text, read_text(request_.source));
        }
        TENON_ASSIGN(llm::ModelFile file, llm::ModelFile::open(request_.engine.model));
        compared_.tokenizer = file.tokenizer;
        TENON_ASSIGN(tokens_, file.tokenizer->encode(text));
        compared_.tokens = tokens_.size();
        if (tokens_.empty()) return Status::invalid_argument("the text is empty: there is nothing to compute");
        EngineChoice choice = request_.engine;
        // A value is compared whole, a cache too: it isn't made longer than it need be.
        if (!choice.context) choice.context = static_cast<int64_t>(tokens_.size()) + 1;
        TENON_TRY(check_context(choice, file, tokens_.size(), 1).status());
        TENON_ASSIGN(registry_, make_registry(request_.engine.plugin_dirs));
        interrupt_.emplace(registry_);
        TENON_ASSIGN(tested_, make_engine(choice, file, std::move(pins_)));
        choice.devices = request_.against;
        choice.threads.reset();
        choice.offload.reset();
        TENON_ASSIGN(reference_, make_engine(choice, std::move(file), {}));
        return {};
    }

    Result<std::unique_ptr<llm::Engine>> make_engine(const EngineChoice &choice, llm::ModelFile file,
                                                     std::vector<Pin> pins) {
        const auto progress = [](std::string_view, uint64_t, uint64_t) {
            return Interrupt::raised() ? Status(Code::cancelled, "interrupted while loading") : Status();
        };
        auto engine = start_engine(registry_, choice, std::move(pins), std::move(file), 0, progress);
        if (!engine.ok()) return std::move(engine).status().in(choice.devices);
        return engine;
    }

    /// Each side by itself, as 'tenon run' would.
    Status compare_logits() {
        for (llm::Engine *engine : {tested_.get(), reference_.get()})
            TENON_TRY(engine->feed(tokens_, interrupt_->token()));
        const auto top = [](const llm::Engine &engine) { return llm::highest_logits(engine.logits(), 1)[0].first; };
        compared_.top = top(*tested_);
        compared_.expected_top = top(*reference_);
        TENON_ASSIGN(compared_.logits,
                     difference(DType::f32, std::as_bytes(tested_->logits()), std::as_bytes(reference_->logits())));
        return {};
    }

    /// Rows that no token has written are undefined where attention never reads them; here all are compared.
    static Status clear_caches(llm::Engine &engine) {
        TENON_TRY(engine.session().synchronize());
        engine.truncate(0);
        TENON_ASSIGN(const Graph graph, engine.model().architecture().build(engine.model().key(1, 1)));
        for (const ValueId leaf : graph.leaves()) {
            const Value &value = graph.values()[leaf];
            if (!(value.flags & TN_VALUE_STATE)) continue;
            Tensor cache = *engine.model().tensors().find(value.name);
            TENON_TRY(cache.clear());
        }
        return {};
    }

    Status compare_run(llm::StepInputs &inputs, std::span<const int32_t> tokens, int64_t first, int64_t bucket) {
        const llm::GraphKey key = reference_->model().key(bucket, 1);
        TENON_ASSIGN(const Graph graph, reference_->model().architecture().build(key));
        // Values stay where they are until the next is asked for: they are kept here meanwhile.
        std::vector<std::pair<ValueId, std::vector<int32_t>>> kept;
        TENON_TRY(inputs.each(key, tokens, first, [&](size_t input, std::span<const int32_t> words) -> Status {
            const ValueId id = graph.find(llm::io::k_inputs[input]);
            if (id != k_no_value) kept.emplace_back(id, std::vector<int32_t>(words.begin(), words.end()));
            return {};
        }));
        std::vector<InputValue> values;
        for (const auto &[id, words] : kept) values.push_back({id, std::as_bytes(std::span(words))});
        const size_t run = compared_.runs.size();
        compared_.runs.push_back(static_cast<int64_t>(tokens.size()));
        return tenon::compare(
            graph, {tested_->session(), tested_->model().tensors()},
            {reference_->session(), reference_->model().tensors()}, values,
            [&](const NodeDifference &found) -> Status {
                const Node &node = graph.nodes()[found.node];
                compared_.lines.push_back(
                    {run, std::string(std::string_view(node.name)), std::string(graph.op(node).name), found});
                return {};
            },
            interrupt_->token());
    }

    const Request &request_;
    std::vector<Pin> pins_;
    std::shared_ptr<Registry> registry_;
    std::optional<Interrupt> interrupt_;
    std::vector<int32_t> tokens_;
    std::unique_ptr<llm::Engine> tested_, reference_;
    Compared compared_;
};

Json to_json(const Compared &compared) {
    const auto add = [](Json &to, const Difference &d) {
        to["nmse"] = d.nmse;  // null where it is infinite
        to["elements"] = d.elements;
        to["unequal"] = d.unequal;
        to["worst"] = {{"element", d.worst}, {"got", d.got}, {"expected", d.expected}};
    };
    Json nodes = Json::array();
    for (const Line &line : compared.lines) {
        Json node{{"run", line.run}, {"name", line.node}, {"op", line.op}};
        add(node, line.found.difference);
        node["limit"] = line.found.limit;
        node["within"] = line.found.within();
        nodes.push_back(std::move(node));
    }
    Json logits;
    add(logits, compared.logits);
    logits["likeliest"] = compared.top;
    logits["expected_likeliest"] = compared.expected_top;
    return {{"run_tokens", compared.runs}, {"nodes", std::move(nodes)}, {"logits", std::move(logits)}};
}

void print_line(Output &out, const Line &line, std::string_view first) {
    const Difference &d = line.found.difference;
    out.print("{:<14} {:>9.2e} {:>9.2e}  {}", first, d.nmse, line.found.limit, llm::escaped(line.node, 200));
    if (d.unequal > 0) out.print("  [{}] {:.7g}, expected {:.7g}", d.worst, d.got, d.expected);
    out.print("\n");
}

void print_text(Output &out, const Compared &compared, const Request &request) {
    const bool all = request.all;
    out.print("{} against {}: {} tokens and one more, {} values\n\n",
              request.engine.devices.empty() ? "default" : request.engine.devices, request.against, compared.tokens,
              compared.lines.size());
    out.print("{:<14} {:>9} {:>9}  {}\n", "op", "NMSE", "limit", all ? "node" : "worst node");
    // The furthest over its limit, or the nearest to it.
    std::map<std::string_view, const Line *> worst;
    const auto ratio = [](const NodeDifference &d) {
        return d.limit > 0 ? d.difference.nmse / d.limit : d.difference.nmse * 1e300;
    };
    for (const Line &line : compared.lines) {
        if (all) print_line(out, line, line.op);
        const Line *&kept = worst[line.op];
        if (!kept || ratio(line.found) > ratio(kept->found)) kept = &line;
    }
    if (!all)
        for (const auto &[op, line] : worst) print_line(out, *line, op);
    const auto piece = [&](int32_t id) { return llm::escaped(compared.tokenizer->piece(id), 200); };
    out.print("\nlogits of ordinary runs: NMSE {:.2e}, likeliest token '{}'", compared.logits.nmse,
              piece(compared.top));
    if (compared.top != compared.expected_top) out.print(", expected '{}'", piece(compared.expected_top));
    out.print("\n");
    const auto over = std::ranges::count_if(compared.lines, is_over);
    if (over == 0) {
        out.print("every node is within its limit\n");
        return;
    }
    const Line &first = *std::ranges::find_if(compared.lines, is_over);
    const Difference &d = first.found.difference;
    out.print(
        "{} of {} values are over their limit, the first in node '{}' ({}, run of {} tokens): NMSE {:.2e} over "
        "{:.2e}, worst element {}: {:.7g}, expected {:.7g}\n",
        over, compared.lines.size(), llm::escaped(first.node, 200), first.op, compared.runs[first.run], d.nmse,
        first.found.limit, d.worst, d.got, d.expected);
}

int run(std::span<const std::string> args) {
    Request request;
    if (auto exit_code = parse(args, request)) return *exit_code;
    if (request.against.empty()) return usage_error("compare", "no reference: give it with --against LIST");
    Result<std::vector<Pin>> pins = parse_pins(request.engine);
    if (!pins.ok()) return usage_error("compare", pins.status().message());
    const Result<Compared> compared = Comparer(request, *std::move(pins)).run();
    if (!compared.ok()) return fail("compare", compared.status());
    Output out("compare");
    if (request.json) {
        out.write(json_text(to_json(*compared)) + "\n");
    } else {
        print_text(out, *compared, request);
    }
    return out.finish(std::ranges::any_of(compared->lines, is_over) ? k_failed : k_done);
}

}  // namespace

extern const Command command_compare;
const Command command_compare{"compare", "compare devices, node by node", run};

}  // namespace tenon::cmd
