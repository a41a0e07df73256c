// The llama architecture on files of a few kilobytes: what is refused, and which graph comes out.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "gguf_writer.h"
#include "llm/architecture.h"

using namespace tenon;
using namespace tenon::llm;
using tenon::test::GgufWriter;

namespace {

constexpr int64_t k_layers = 2, k_width = 64, k_heads = 4, k_kv_heads = 2, k_inner = 96, k_vocabulary = 10;

/// Hyperparameters but for the keys in `without`, and all tensors.
GgufWriter tiny_llama(std::string_view without = "") {
    GgufWriter file;
    const auto natural = [&](std::string key, int64_t value) {
        if (key != without) file.natural("llama." + key, static_cast<uint32_t>(value));
    };
    file.text("general.architecture", "llama");
    natural("block_count", k_layers);
    natural("context_length", 512);
    natural("embedding_length", k_width);
    natural("feed_forward_length", k_inner);
    natural("attention.head_count", k_heads);
    natural("attention.head_count_kv", k_kv_heads);
    if (without != "attention.layer_norm_rms_epsilon") file.real("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    file.tensor("token_embd.weight", {k_vocabulary, k_width}, DType::q8_0).tensor("output_norm.weight", {k_width});
    const int64_t kv = k_width / k_heads * k_kv_heads;
    for (int64_t layer = 0; layer < k_layers; ++layer) {
        const auto tensor = [&](std::string_view name, std::vector<int64_t> shape) {
            const DType type = shape.size() == 2 ? DType::q4_0 : DType::f32;
            file.tensor(fmt::format("blk.{}.{}.weight", layer, name), std::move(shape), type);
        };
        for (const std::string_view norm : {"attn_norm", "ffn_norm"}) tensor(norm, {k_width});
        tensor("attn_q", {k_width, k_width});
        tensor("attn_k", {kv, k_width});
        tensor("attn_v", {kv, k_width});
        tensor("attn_output", {k_width, k_width});
        tensor("ffn_gate", {k_inner, k_width});
        tensor("ffn_up", {k_inner, k_width});
        tensor("ffn_down", {k_width, k_inner});
    }
    return file;
}

Result<std::unique_ptr<Architecture>> read(const GgufWriter &file) {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-llama-XXXXXX").string();
    ::close(::mkstemp(name.data()));
    file.write(name);
    auto gguf = Gguf::open(name);
    std::filesystem::remove(name);
    REQUIRE_MESSAGE(gguf.ok(), gguf.status().message());
    return read_architecture(*std::move(gguf));
}

void refused(const GgufWriter &file, std::initializer_list<std::string_view> parts) {
    const auto result = read(file);
    REQUIRE_FALSE(result.ok());
    const std::string &message = result.status().message();
    CAPTURE(message);
    CHECK(message.find("tenon-llama-") != message.npos);
    for (const std::string_view part : parts) CHECK_MESSAGE(message.find(part) != message.npos, part);
}

Graph build(const GgufWriter &file, GraphKey key) {
    auto llama = read(file);
    REQUIRE_MESSAGE(llama.ok(), llama.status().message());
    key.capacity = key.cache_rows = k_cache_block_rows;
    auto graph = (*llama)->build(key);
    REQUIRE_MESSAGE(graph.ok(), graph.status().message());
    return *graph;
}

const Node *node(const Graph &graph, std::string_view name) {
    const auto found = std::ranges::find(graph.nodes(), name, &Node::name);
    return found == graph.nodes().end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("llama: the shape is what the file says") {
    const auto llama = read(tiny_llama());
    REQUIRE_MESSAGE(llama.ok(), llama.status().message());
    const ModelShape &shape = (*llama)->shape();
    CHECK(shape.vocabulary == k_vocabulary);
    CHECK(shape.layers == k_layers);
    CHECK(shape.kv_heads == k_kv_heads);
    CHECK(shape.key_width == k_width / k_heads);
    CHECK(shape.context_length == 512);
}

TEST_CASE("llama: a file without grouped heads has as many of keys as of queries") {
    GgufWriter file = tiny_llama("attention.head_count_kv");
    for (int64_t layer = 0; layer < k_layers; ++layer)
        for (const std::string_view name : {"attn_k", "attn_v"})
            file.tensor(fmt::format("blk.{}.{}.weight", layer, name), {k_width, k_width});
    const auto llama = read(file);
    REQUIRE_MESSAGE(llama.ok(), llama.status().message());
    CHECK((*llama)->shape().kv_heads == k_heads);
}

TEST_CASE("llama: the logits are those of the rows that were asked for") {
    const Graph graph = build(tiny_llama(), {.tokens = 8, .rows = 1});
    REQUIRE(graph.outputs().size() == 1);
    const Value &logits = graph.values()[graph.outputs()[0]];
    CHECK(logits.shape == Shape{1, k_vocabulary});
    CHECK(graph.find(io::k_logits) == graph.outputs()[0]);
    REQUIRE(graph.find(io::k_out_rows) != k_no_value);
    CHECK(graph.values()[graph.find(io::k_out_rows)].shape == Shape{1});
    // Behind the last attention only the asked rows are computed.
    const Node *down = node(graph, "blk.1.ffn_down");
    REQUIRE(down);
    CHECK(graph.values()[down->outputs[0]].shape == Shape{1, k_width});
    CHECK(graph.values()[node(graph, "blk.0.ffn_down")->outputs[0]].shape == Shape{8, k_width});
}

TEST_CASE("llama: with all rows asked for there is nothing to choose") {
    const Graph graph = build(tiny_llama(), {.tokens = 4, .rows = 4});
    CHECK(graph.find(io::k_out_rows) == k_no_value);
    CHECK(graph.values()[graph.outputs()[0]].shape == Shape{4, k_vocabulary});
}

TEST_CASE("llama: without rows there is no output, and the last layer only fills its cache") {
    const Graph graph = build(tiny_llama(), {.tokens = 4, .rows = 0});
    CHECK(graph.outputs().empty());
    CHECK(node(graph, "blk.0.attn"));
    CHECK(node(graph, "blk.1.cache_k"));
    CHECK(node(graph, "blk.1.cache_v"));
    CHECK_FALSE(node(graph, "blk.1.attn"));
    CHECK_FALSE(node(graph, "blk.1.ffn_down"));
}

TEST_CASE("llama: the cache has the precision of the graph") {
    for (const auto &[precision, type] :
         {std::pair{Precision::fast, DType::f16}, std::pair{Precision::exact, DType::f32}}) {
        const Graph graph = build(tiny_llama(), {.precision = precision});
        for (const std::string_view name : {"cache_k.0", "cache_v.1"}) {
            REQUIRE(graph.find(name) != k_no_value);
            const Value &cache = graph.values()[graph.find(name)];
            CHECK(cache.type == type);
            CHECK(cache.shape == Shape{k_cache_block_rows, k_kv_heads, k_width / k_heads});
        }
        for (const Node &each : graph.nodes()) CHECK(each.precision == precision);
    }
}

TEST_CASE("llama: the output matrix is the file's own, else the embedding") {
    const auto matrix = [](const Graph &graph) { return graph.values()[node(graph, io::k_logits)->inputs[1]].name; };
    CHECK(matrix(build(tiny_llama(), {})) == "token_embd.weight");
    GgufWriter untied = tiny_llama();
    untied.tensor("output.weight", {k_vocabulary, k_width}, DType::q8_0);
    CHECK(matrix(build(untied, {})) == "output.weight");
}

TEST_CASE("llama: a bias is used where the file has one, factors of RoPE too") {
    GgufWriter file = tiny_llama();
    file.tensor("blk.1.attn_q.bias", {k_width}).tensor("rope_freqs.weight", {k_width / k_heads / 2});
    const Graph graph = build(file, {});
    CHECK(graph.op(*node(graph, "blk.0.attn_q")).name == "linear");
    CHECK(graph.op(*node(graph, "blk.1.attn_q")).name == "linear_bias");
    CHECK(graph.find("rope_freqs.weight") != k_no_value);
}

TEST_CASE("llama: scaled positions reach the op") {
    const auto rope = [](const GgufWriter &file) {
        const Graph graph = build(file, {});
        return node(graph, "blk.0.attn_q_rope")->params.as<tn_params_rope>();
    };
    CHECK(rope(tiny_llama()).scale == 1.0f);
    CHECK(rope(tiny_llama()).base == 10000.0f);
    CHECK(rope(tiny_llama()).pairing == TN_ROPE_ADJACENT);
    GgufWriter linear = tiny_llama();
    linear.real("llama.rope.scaling.factor", 4).text("llama.rope.scaling.type", "linear");
    CHECK(rope(linear).scale == 0.25f);
    CHECK(rope(linear).ext_factor == 0.0f);
    GgufWriter yarn = tiny_llama();
    yarn.real("llama.rope.scaling.factor", 8).text("llama.rope.scaling.type", "yarn");
    yarn.natural("llama.rope.scaling.original_context_length", 128);
    CHECK(rope(yarn).scale == 0.125f);
    CHECK(rope(yarn).ext_factor == 1.0f);
    CHECK(rope(yarn).original_context == 128);
}

TEST_CASE("llama: every missing number and tensor is named") {
    for (const std::string key : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                                  "attention.head_count", "attention.layer_norm_rms_epsilon"})
        refused(tiny_llama(key), {"'llama." + key + "'", "missing"});
    for (const std::string name : {"token_embd.weight", "output_norm.weight", "blk.1.attn_norm.weight",
                                   "blk.0.attn_k.weight", "blk.1.ffn_down.weight"})
        refused(tiny_llama().remove(name), {"'" + name + "'", "missing", "shape ["});
}

TEST_CASE("llama: tensors of another shape or type are refused with both") {
    refused(tiny_llama().tensor("blk.0.attn_v.weight", {k_width, k_width}),
            {"blk.0.attn_v.weight", "[64, 64]", "[32, 64]"});
    refused(tiny_llama().tensor("output_norm.weight", {1, k_width}), {"output_norm.weight", "[1, 64]", "[64]"});
    refused(tiny_llama().tensor("blk.1.ffn_norm.weight", {k_width}, DType::i32),
            {"blk.1.ffn_norm.weight", "i32", "f32"});
    refused(tiny_llama().tensor("blk.1.ffn_up.weight", {k_inner, k_width}, DType::i8), {"blk.1.ffn_up.weight", "i8"});
    refused(tiny_llama().tensor("token_embd.weight", {k_width}), {"token_embd.weight", "[64]"});
}

TEST_CASE("llama: what would be another model is refused, not ignored") {
    refused(tiny_llama().tensor("blk.0.attn_q_norm.weight", {k_width}), {"blk.0.attn_q_norm.weight"});
    refused(tiny_llama().natural("llama.expert_count", 8), {"llama.expert_count", "8", "experts"});
    refused(tiny_llama().text("llama.rope.scaling.type", "longrope"), {"longrope", "yarn"});
    refused(tiny_llama("attention.head_count_kv").naturals("llama.attention.head_count_kv", {2, 4}),
            {"llama.attention.head_count_kv", "layer"});
    refused(tiny_llama("attention.head_count_kv").natural("llama.attention.head_count_kv", 3),
            {"llama.attention.head_count_kv", "3", "4"});
    refused(tiny_llama().natural("llama.rope.dimension_count", 7), {"llama.rope.dimension_count", "7", "even"});
    refused(tiny_llama().natural("llama.rope.dimension_count", 18), {"llama.rope.dimension_count", "18"});
    refused(tiny_llama("block_count").natural("llama.block_count", 0), {"llama.block_count", "0"});
    refused(tiny_llama("block_count").natural("llama.block_count", 0xffffffffu), {"llama.block_count"});
}

TEST_CASE("llama: equal numbers for all layers are one number") {
    const auto llama =
        read(tiny_llama("attention.head_count_kv").naturals("llama.attention.head_count_kv", {k_kv_heads, k_kv_heads}));
    CHECK_MESSAGE(llama.ok(), llama.status().message());
}

TEST_CASE("an unknown architecture is named, and those that are known") {
    GgufWriter file;
    refused(file.text("general.architecture", "mamba"), {"'mamba'", "llama"});
    refused(GgufWriter().natural("x", 1), {"general.architecture", "missing"});
}

TEST_CASE("keys that make no graph are refused") {
    const auto llama = read(tiny_llama());
    REQUIRE(llama.ok());
    const int64_t block = k_cache_block_rows;
    for (const GraphKey key : {GraphKey{.tokens = 0, .capacity = block, .cache_rows = block},
                               GraphKey{.tokens = 2, .rows = 3, .capacity = block, .cache_rows = block},
                               GraphKey{.rows = -1, .capacity = block, .cache_rows = block},
                               GraphKey{.capacity = block + 1, .cache_rows = 2 * block},
                               GraphKey{.capacity = 2 * block, .cache_rows = block}, GraphKey{}})
        CHECK((*llama)->build(key).status().code() == Code::invalid_argument);
}
