// A graph as text, a line a node.
#include <fmt/format.h>

#include <iterator>

#include "base/no_throw.h"
#include "tenon/graph.h"

namespace tenon {
namespace {

std::string operand(const Graph &graph, ValueId id) {
    if (id == k_no_value) return "-";
    const Value &value = graph.values()[id];
    std::string text = fmt::format("{}:{}{}", value.name, dtype_info(value.type).name, to_string(value.shape));
    if (value.view_of != k_no_value && value.producer == k_no_value)
        text += fmt::format("@{}+{}", graph.values()[value.view_of].name, value.offset);
    return text;
}

void write(const Graph &graph, std::string &text) {
    for (const Node &node : graph.nodes()) {
        auto out = std::back_inserter(text);
        for (size_t i = 0; i < node.outputs.size(); ++i)
            fmt::format_to(out, "{}{}", i ? ", " : "", operand(graph, node.outputs[i]));
        fmt::format_to(out, " = {}{}(", graph.op(node).name, node.precision == Precision::exact ? ".exact" : "");
        for (size_t i = 0; i < node.inputs.size(); ++i)
            fmt::format_to(out, "{}{}", i ? ", " : "", operand(graph, node.inputs[i]));
        text += ")\n";
    }
}

}  // namespace

std::string to_text(const Graph &graph) noexcept {
    std::string text;
    const Status status = no_throw([&] {
        write(graph, text);
        return Status();
    });
    return status.ok() ? std::move(text) : std::string();
}

}  // namespace tenon
