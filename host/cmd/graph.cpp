// tenon graph MODEL: which device would run what, and why; nothing is loaded.
#include <fmt/format.h>

#include "cmd/command.h"
#include "cmd/support/engine_options.h"
#include "cmd/support/graphviz.h"
#include "cmd/support/options.h"
#include "cmd/support/output.h"
#include "cmd/support/registry_options.h"
#include "llm/offload.h"

namespace tenon::cmd {
namespace {

struct Request {
    EngineChoice engine;
    std::string format = "text", placement = "reference";
    int64_t tokens = 1;
};

std::optional<int> parse(std::span<const std::string> args, Request &request) {
    Options options(
        "graph", "Shows on which devices a model's graph would run, why, and in how much memory",
        "Codes: usr pin; 1.dst, 1.vsrc where a buffer lies; 1.inp graph input; 1.wgt, 1.off the first weight; 2.sup "
        "neighbours; 3.best, 3.upg most inputs; 4.vsrc, 4.cur, 4.cpy values and copies. A weight takes the first "
        "device "
        "that supports all that reads it. No weight is loaded, and no memory of a device is taken.");
    add_engine_options(options, request.engine);
    options
        .choice("format", "text; dot for Graphviz; svg, drawn by Graphviz; json", {"text", "dot", "svg", "json"},
                request.format)
        .choice("placement", "the rules by which nodes are placed", {"reference"}, request.placement)
        .integer("tokens", "N", "tokens that the graph takes at once", 1, 1 << 16, request.tokens);
    return options.parse(args);
}

Result<std::string> show(const Request &request, std::vector<Pin> pins) {
    TENON_ASSIGN(const llm::ModelFile file, llm::ModelFile::open(request.engine.model));
    TENON_ASSIGN(const auto registry, make_registry(request.engine.plugin_dirs));
    TENON_ASSIGN(const auto session, make_session(registry, request.engine, std::move(pins)));
    TENON_ASSIGN(const int64_t context,
                 llm::choose_context(request.engine.context.value_or(0), file.architecture->shape().context_length));
    const int64_t rows = (context + llm::k_cache_block_rows - 1) / llm::k_cache_block_rows * llm::k_cache_block_rows;
    llm::GraphKey key{
        .tokens = 1, .rows = 1, .capacity = rows, .cache_rows = rows, .precision = precision_of(request.engine)};
    TENON_ASSIGN(const Graph single, file.architecture->build(key));
    TENON_ASSIGN(auto homes, llm::place_model(*session, *file.architecture, key, single, request.engine.offload));
    key.tokens = request.tokens;
    TENON_ASSIGN(const Graph graph, file.architecture->build(key));
    for (TensorHome &home : homes) home.value = graph.find(single.values()[home.value].name);
    TENON_ASSIGN(const auto schedule, session->plan(graph, homes));
    if (request.format == "json") return schedule->to_json() + "\n";
    if (request.format == "dot") return schedule->to_dot();
    if (request.format == "svg") return render_svg(schedule->to_dot());
    return schedule->to_text();
}

int run(std::span<const std::string> args) {
    Request request;
    if (auto exit_code = parse(args, request)) return *exit_code;
    Result<std::vector<Pin>> pins = parse_pins(request.engine);
    if (!pins.ok()) return usage_error("graph", pins.status().message());
    const Result<std::string> shown = show(request, *std::move(pins));
    if (!shown.ok()) return fail("graph", shown.status());
    Output out("graph");
    out.write(*shown);
    return out.finish();
}

}  // namespace

extern const Command command_graph;
const Command command_graph{"graph", "show which device runs what, and why", run};

}  // namespace tenon::cmd
