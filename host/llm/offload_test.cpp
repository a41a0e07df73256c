#include "llm/offload.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>

using namespace tenon;
using namespace tenon::llm;

namespace {

using Groups = std::map<std::string, uint32_t>;

/// What layer_groups says of a graph's weights and states, by their names.
Groups groups_of(GraphBuilder &&builder, int64_t layers) {
    const auto graph = std::move(builder).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    const auto group_of = layer_groups(*graph, layers);
    REQUIRE(group_of.size() == graph->values().size());
    Groups groups;
    for (ValueId id = 0; id < group_of.size(); ++id)
        if (graph->values()[id].flags & (TN_VALUE_WEIGHT | TN_VALUE_STATE))
            groups[std::string(graph->values()[id].name)] = group_of[id];
    return groups;
}

}  // namespace

TEST_CASE("layer_groups: a decoder's tensors go with the layer that uses them first") {
    GraphBuilder b;
    const ValueId rows = b.input("rows", DType::i32, {1});
    const ValueId table = b.weight("table", DType::f32, {8, 4}), head = b.weight("head", DType::f32, {8, 4});
    const ValueId scale = b.weight("scale", DType::f32, {4});  // of all layers
    ValueId x = b.rms_norm(b.gather_rows(table, rows, "embed"), b.weight("embed_norm", DType::f32, {4}), 1e-6f);
    for (int layer = 0; layer < 11; ++layer) {
        b.set_scope(fmt::format("blk.{}.", layer));
        const ValueId weight = b.weight(fmt::format("w{}", layer), DType::f32, {4, 4});
        const ValueId cache = b.state(fmt::format("cache{}", layer), DType::f32, {8, 1, 4});
        x = b.linear(b.rms_norm(x, scale, 1e-6f), weight, k_no_value);
        b.output(b.kv_append(cache, b.reshape(x, {1, 1, 4}), rows));
    }
    b.set_scope("");
    x = b.rms_norm(x, b.weight("last_norm", DType::f32, {4}), 1e-6f);
    b.output(b.linear(x, head, k_no_value));
    b.output(b.linear(x, table, k_no_value));  // tied to the embedding: stays with its first reader
    b.weight("unused", DType::f32, {4});

    Groups want = {{"table", 0}, {"embed_norm", 0}, {"scale", 1}, {"last_norm", 12}, {"head", 12}, {"unused", 0}};
    for (uint32_t layer = 0; layer < 11; ++layer)
        want[fmt::format("w{}", layer)] = want[fmt::format("cache{}", layer)] = layer + 1;
    CHECK(groups_of(std::move(b), 11) == want);
}

TEST_CASE("layer_groups: only names of layers are such, and no layer lies beyond the last") {
    // By the name of the one node that reads it.
    const std::map<std::string, uint32_t> want = {
        {"blk.0.a", 1}, {"blk.1.a", 2},  {"blk.2.a", 3}, {"blk.3.a", 3},          {"blk.4294967295.a", 3},
        {"blk.1", 0},   {"blk..a", 0},   {"blk.x.a", 0}, {"blk.-1.a", 0},         {"blk. 1.a", 0},
        {"blk1.a", 0},  {"a.blk.1.", 0}, {"blk.1a.", 0}, {"blk.4294967296.a", 0}, {"blk.99999999999999999999.a", 0},
        {"Blk.1.a", 0}, {"blk.+1.a", 0}, {"blk.01.", 2}, {"blk.1.", 2},
    };
    for (const auto &[name, group] : want) {
        CAPTURE(name);
        GraphBuilder b;
        const ValueId x = b.input("x", DType::f32, {1, 4}), weight = b.weight("w", DType::f32, {4, 4});
        b.output(b.linear(x, weight, k_no_value, name));
        CHECK(groups_of(std::move(b), 2) == Groups{{"w", group}});
    }
}

TEST_CASE("layer_groups: a model without layers is one group") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {1, 4});
    b.output(b.linear(x, b.weight("w", DType::f32, {4, 4}), k_no_value));
    CHECK(groups_of(std::move(b), 0) == Groups{{"w", 0}});
}
