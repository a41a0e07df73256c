#include "llm/offload.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "llm/buckets.h"

namespace tenon::llm {
namespace {

constexpr std::string_view k_layer = "blk.";

/// The layer of a node, by its name ("blk.3.attn_q").
std::optional<uint32_t> layer_of(std::string_view node) {
    if (!node.starts_with(k_layer)) return std::nullopt;
    uint32_t layer = 0;
    const char *const end = node.data() + node.size();
    const auto read = std::from_chars(node.data() + k_layer.size(), end, layer);
    return read.ec == std::errc() && read.ptr != end && *read.ptr == '.' ? std::optional(layer) : std::nullopt;
}

}  // namespace

std::vector<uint32_t> layer_groups(const Graph &graph, int64_t layers) {
    const auto behind = static_cast<uint32_t>(layers) + 1;
    std::vector<uint32_t> group_of(graph.values().size(), k_no_value);
    bool in_layers = false;
    for (const Node &node : graph.nodes()) {
        const auto layer = layer_of(node.name);
        in_layers = in_layers || layer;
        const uint32_t group = layer ? std::min(*layer, behind - 1) + 1 : in_layers ? behind : 0;
        for (const ValueId input : node.inputs) {
            if (input == k_no_value) continue;
            uint32_t &of = group_of[graph.base(input)];
            if (of == k_no_value) of = group;
        }
    }
    std::ranges::replace(group_of, k_no_value, uint32_t{0});  // what nobody uses
    return group_of;
}

Result<std::vector<TensorHome>> place_model(Session &session, const Architecture &architecture, const GraphKey &key,
                                            const Graph &graph, std::optional<int64_t> last_layers) {
    if (session.devices().size() == 1) {
        if (last_layers)
            return Status::invalid_argument(fmt::format(
                "--offload {}: there is only one device, {}; layers are offloaded from the last device of a "
                "list to those before it",
                *last_layers, session.devices()[0]->name()));
        return session.place_tensors(graph);
    }
    const int64_t layers = architecture.shape().layers;
    GraphKey prompt = key;
    prompt.tokens = std::min(k_max_bucket, key.cache_rows);
    TENON_ASSIGN(const Graph of_prompt, architecture.build(prompt));
    const Graph graphs[] = {of_prompt, graph};
    Offload offload{layer_groups(graph, layers), {}, graphs};
    // All layers: the whole model, what comes before them too.
    if (last_layers && *last_layers > 0)
        offload.last_groups = static_cast<uint32_t>(std::min(*last_layers, layers) + (*last_layers < layers ? 1 : 2));
    else if (last_layers)
        offload.last_groups = 0;
    auto homes = session.place_tensors(graph, offload);
    if (!homes.ok() && last_layers) return std::move(homes).status().in(fmt::format("--offload {}", *last_layers));
    return homes;
}

}  // namespace tenon::llm
