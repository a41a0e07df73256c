// Graphs at sizes where anything that isn't linear, or goes as deep as the graph, would be felt; and whose memory is
// whose.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <map>
#include <thread>

#include "graph/abi_graph.h"
#include "graph/decompose.h"
#include "graph/name_index.h"
#include "tenon/graph.h"

using namespace tenon;

namespace {

constexpr uint32_t k_million = 1000000;

/// x -> neg -> neg ...
Graph chain(uint32_t nodes) {
    GraphBuilder b;
    ValueId x = b.input("x", DType::f32, {4});
    for (uint32_t i = 0; i < nodes; ++i) x = b.node(TN_OP_NEG, {x});
    b.output(x);
    auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    return *graph;
}

Graph renamed(std::string_view leaf, std::string_view node, std::string_view scope = "") {
    GraphBuilder b;
    b.set_scope(std::string(scope));
    const ValueId x = b.input(std::string(leaf), DType::f32, {2, 2});
    b.output(b.add(x, b.weight("w", DType::f32, {2, 2}), std::string(node)));
    return *std::move(b).finish();
}

}  // namespace

TEST_CASE("large graph: a chain of a million nodes is built, hashed and searched") {
    const Graph graph = chain(k_million);
    REQUIRE(graph.nodes().size() == k_million);
    REQUIRE(graph.values().size() == k_million + 1);
    CHECK(graph.hash() == chain(k_million).hash());
    CHECK(graph.names() == chain(k_million).names());
    CHECK(graph.hash() != chain(k_million - 1).hash());
    for (const uint32_t i : {0u, 1u, 4097u, k_million - 1}) {
        CHECK(graph.nodes()[i].inputs[0] == i);
        CHECK(graph.nodes()[i].outputs[0] == i + 1);
        CHECK(graph.nodes()[i].name == fmt::format("neg.{}", i));
    }
    // Were find linear, this would be 10^12 steps.
    uint64_t found = 0;
    for (const Node &node : graph.nodes()) found += graph.find(node.name) == node.outputs[0];
    CHECK(found == k_million);
    CHECK(graph.find("x") == 0);
    CHECK(graph.find("neg.1000000") == k_no_value);
}

TEST_CASE("large graph: a million leaves, a node that reads many values, and a value that many nodes read") {
    GraphBuilder b;
    constexpr uint32_t leaves = k_million;
    std::vector<ValueId> inputs;
    for (uint32_t i = 0; i < leaves; ++i) inputs.push_back(b.input(fmt::format("x.{}", i), DType::f32, {1}));
    const std::vector<ValueId> most(inputs.begin(), inputs.begin() + 65535);  // as many as concat takes
    tn_params_concat concat{};
    concat.struct_size = TN_SIZE_PARAMS_CONCAT;
    const ValueId all = b.node(TN_OP_CONCAT, most, ParamBlob::of(concat), "all");
    for (uint32_t i = 0; i < 1000; ++i) b.output(b.slice(all, 0, i, 1));
    for (uint32_t i = 0; i < 100000; ++i) b.output(b.node(TN_OP_ABS, {all}));
    const auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    CHECK(graph->leaves().size() == leaves);
    CHECK(std::ranges::equal(graph->nodes()[0].inputs, most));
    CHECK(graph->values()[all].shape == Shape{65535});
    CHECK(graph->find("x.999999") == inputs.back());
    CHECK(graph->find("all") == all);
    for (ValueId id = 0; id < graph->values().size(); ++id) {
        const ValueId view_of = graph->values()[id].view_of;
        if (graph->bases()[id] != (view_of == k_no_value ? id : view_of)) FAIL("base of ", id);
    }
}

TEST_CASE("large graph: two leaves of one name are found among a million") {
    GraphBuilder b;
    for (uint32_t i = 0; i < k_million; ++i) b.weight(fmt::format("w.{}", i), DType::f32, {1});
    b.weight("w.500000", DType::f32, {1});
    const auto graph = std::move(b).finish();
    REQUIRE(!graph.ok());
    CHECK(graph.status().message().find("'w.500000'") != std::string::npos);
}

TEST_CASE("large graph: what nodes and values point to stays while a builder grows, and in copies of its graph") {
    struct Seen {
        const ValueId *inputs, *outputs;
        const void *params;
        const char *name;
    };
    const std::array<float, 2> data{1, 2};
    std::vector<Seen> seen;
    std::optional<Graph> copy;
    {
        auto b = std::make_unique<GraphBuilder>();
        b->set_scope("blk.");
        ValueId x = b->constant(DType::f32, {2}, std::as_bytes(std::span(data)));
        const char *leaf_name = b->value(x).name.c_str();
        const auto *constant = b->value(x).constant;
        for (uint32_t i = 0; i < 100000; ++i) x = b->affine(x, float(i), 1, fmt::format("node {}", i));
        CHECK(b->value(0).name.c_str() == leaf_name);
        CHECK(b->value(0).constant == constant);
        const char *last_name = b->value(x).name.c_str();
        b->output(x);
        auto graph = std::move(*b).finish();
        REQUIRE(graph.ok());
        CHECK(graph->values()[0].constant == constant);
        CHECK(graph->values()[x].name.c_str() == last_name);
        copy = *graph;
        for (const Node &node : graph->nodes())
            seen.push_back({node.inputs.data(), node.outputs.data(), node.params.data(), node.name.c_str()});
    }
    // Builder and first graph are gone; the copy shows the same memory, with what was written there.
    CHECK(std::ranges::equal(*copy->values()[0].constant, std::as_bytes(std::span(data))));
    for (uint32_t i = 0; i < seen.size(); ++i) {
        const Node &node = copy->nodes()[i];
        const bool same = node.inputs.data() == seen[i].inputs && node.outputs.data() == seen[i].outputs &&
                          node.params.data() == seen[i].params && node.name.c_str() == seen[i].name;
        const bool right = node.inputs[0] == i && node.outputs[0] == i + 1 &&
                           node.params.as<tn_params_affine>().a == float(i) &&
                           node.name == fmt::format("blk.node {}", i) && node.name.c_str()[node.name.size()] == 0;
        if (!same || !right) FAIL("node ", i);
    }
}

TEST_CASE("large graph: a decomposition outlives builder and graph") {
    std::optional<Decomposition> formula;
    {
        GraphBuilder b;
        b.rms_norm(b.input("x", DType::f32, {2, 8}), b.weight("w", DType::f32, {8}), 1e-5f, "norm");
        const auto graph = std::move(b).finish();
        auto made = decompose(*graph, 0);
        REQUIRE(made.ok());
        formula = *std::move(made);
    }
    REQUIRE(formula.has_value());
    CHECK(formula->values[0].name == "x");
    CHECK(formula->values[1].name == "w");
    for (const Node &part : formula->nodes) {
        CHECK(std::string(part.name).starts_with("norm/"));
        for (ValueId id : part.inputs) CHECK(id < formula->values.size());
    }
}

TEST_CASE("graph: names() is of leaves' and nodes' names, hash() of neither") {
    const Graph graph = renamed("x", "sum");
    for (const Graph &other : {renamed("y", "sum"), renamed("x", "add"), renamed("x", "sum", "blk.0.")}) {
        CHECK(other.hash() == graph.hash());
        CHECK(other.names() != graph.names());
    }
    CHECK(renamed("x", "sum").names() == graph.names());
    // What moves from one name to the next isn't lost in their sequence.
    GraphBuilder a, b;
    a.input("ab", DType::f32, {1}), a.input("c", DType::f32, {1});
    b.input("a", DType::f32, {1}), b.input("bc", DType::f32, {1});
    CHECK(std::move(a).finish()->names() != std::move(b).finish()->names());
}

TEST_CASE("graph: find answers the first of a name, never a view, and from any thread") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {4, 4});
    const ValueId view = b.slice(x, 0, 0, 2);
    const ValueId first = b.node(TN_OP_NEG, {view}, {}, "same");
    b.node(TN_OP_NEG, {first}, {}, "same");
    const ValueId state = b.state("cache", DType::f16, {8, 2, 4});
    const ValueId after =
        b.kv_append(state, b.input("new", DType::f32, {1, 2, 4}), b.input("row", DType::i32, {1}), "append");
    const auto graph = std::move(b).finish();
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    std::atomic<int> wrong = 0;
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([&] {
                wrong += graph->find("x") != x;
                wrong += graph->find("same") != first;
                wrong += graph->find("cache") != state;
                wrong += graph->find("append") != after;  // lies in the cache, but is a node's
                wrong += graph->find("") != k_no_value;
            });
    }
    CHECK(wrong == 0);
}

TEST_CASE("name index: as a map, also where it is full of one name") {
    std::vector<Value> values(1000);
    Arena memory;
    for (size_t i = 0; i < values.size(); ++i) values[i].name = memory.join({fmt::format("{}", i % 100)});
    NameIndex index(values, values.size());
    std::map<std::string, ValueId> expected;
    for (ValueId id = 0; id < values.size(); ++id) {
        const auto [there, added] = expected.emplace(values[id].name, id);
        CHECK(index.insert(id) == (added ? k_no_value : there->second));
    }
    for (const auto &[name, id] : expected) CHECK(index.find(name) == id);
    CHECK(index.find("100") == k_no_value);
    CHECK(NameIndex({}, 0).find("x") == k_no_value);
}

TEST_CASE("abi graph: operands are right after every view, however the arrays moved in between") {
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {4});
    b.add(x, b.node(TN_OP_NEG, {x}));
    const auto graph = std::move(b).finish();
    REQUIRE(graph.ok());
    AbiGraph abi;
    abi.add_value(graph->values()[x], 0, TN_NONE);
    for (uint32_t i = 1; i < 20000; ++i) {
        const uint32_t out = abi.add_value(graph->values()[1], 0, TN_NONE);
        const std::array<uint32_t, 2> in{i - 1, i / 2};
        abi.add_node(graph->nodes()[i % 2], std::span(in).first(1 + i % 2), std::array{out});
        if (i % 97 != 0 && i != 19999) continue;
        const tn_graph &view = abi.view();
        REQUIRE(view.node_count == i);
        for (uint32_t n = 0; n < i; ++n) {
            const tn_node &node = view.nodes[n];
            const uint32_t k = n + 1;
            const bool right = node.input_count == 1 + k % 2 && node.inputs[0] == k - 1 &&
                               (k % 2 == 0 || node.inputs[1] == k / 2) && node.outputs[0] == k;
            if (!right) FAIL("node ", n, " of ", i);
        }
    }
}

TEST_CASE("graph: params of any length are kept whole, filled up to words") {
    for (const uint64_t bytes : {16u, 20u, 64u, 65u, 1000u}) {
        std::vector<uint64_t> words(130, UINT64_MAX);
        words[0] = bytes;
        const ParamBlob blob(words.data(), bytes), copy = blob;
        CHECK(copy.bytes().size() == (bytes + 7) / 8 * 8);
        for (uint64_t i = 8; i < copy.bytes().size(); ++i)
            CHECK(copy.bytes()[i] == (i < bytes ? std::byte(0xff) : std::byte(0)));
    }
    CHECK(ParamBlob().data() == nullptr);
}
