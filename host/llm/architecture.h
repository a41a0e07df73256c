// What a model architecture is: it reads its hyperparameters and checks its tensors in a GGUF file, and builds the
// model's forward pass as a graph. One file in arch/ each; the build collects the folder, so that a new one edits no
// list.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "llm/gguf.h"
#include "tenon/graph.h"
#include "tenon/status.h"

namespace tenon::llm {

/// What all decoder models have in common, as the file says it.
struct ModelShape {
    int64_t vocabulary = 0;      // rows of the embedding: logits of one token
    int64_t context_length = 0;  // tokens that the model was trained for
    int64_t layers = 0;
    int64_t width = 0;                       // elements of one token's hidden state
    int64_t heads = 0;                       // of queries
    int64_t kv_heads = 0;                    // of keys and values; heads is a multiple
    int64_t key_width = 0, value_width = 0;  // elements of one head
};

/// Positions that one block of the KV cache holds. Small enough that a short context wastes little, large enough that a
/// block is one long read.
inline constexpr int64_t k_cache_block_rows = 256;

/// Everything that shapes a graph: one graph, and so one plan, a key (DESIGN section 4, "Precision").
struct GraphKey {
    int64_t tokens = 1;      // a bucket: this many token slots, of which some may be padding
    int64_t rows = 1;        // rows of logits: 0 (only the cache is filled), or up to `tokens`
    int64_t capacity = 0;    // positions that attention may look at: whole blocks, at most `cache_rows`
    int64_t cache_rows = 0;  // positions that the cache's tensors hold: whole blocks
    Precision precision = Precision::fast;
    auto operator<=>(const GraphKey &) const = default;
};

/// Names of a decoder graph's inputs, all i32. t = key.tokens, r = key.rows. An input that a graph doesn't need isn't
/// there.
namespace io {
inline constexpr std::string_view k_tokens = "tokens";        // [t] ids; 0 in padding slots
inline constexpr std::string_view k_pos = "pos";              // [t] positions, for RoPE and attention
inline constexpr std::string_view k_seq = "seq";              // [t] sequence, 0; -1 marks a padding slot
inline constexpr std::string_view k_cache_row = "cache_row";  // [t] cache row to write; -1 drops it
inline constexpr std::string_view k_blocks = "blocks";        // [1, capacity / k_cache_block_rows] cache blocks
inline constexpr std::string_view k_kv_start = "kv_start";    // [1] first position held
inline constexpr std::string_view k_kv_len = "kv_len";        // [1] positions held, these tokens included
inline constexpr std::string_view k_out_rows = "out_rows";    // [r] slots whose logits are asked for; only if r < t
inline constexpr std::array k_inputs{k_tokens, k_pos, k_seq, k_cache_row, k_blocks, k_kv_start, k_kv_len, k_out_rows};
inline constexpr std::string_view k_logits = "output";  // output, f32 [r, vocabulary]; only if r > 0
}  // namespace io

/// A model read from a file. Immutable; any thread.
class Architecture {
public:
    virtual ~Architecture() = default;
    virtual const ModelShape &shape() const = 0;
    /// The forward pass of `key.tokens` tokens of one sequence over a KV cache. Weights carry the file's tensor names
    /// and types, caches are states [cache_rows, kv_heads, width of a head], f16, in exact precision f32. Nodes are
    /// named as the file names the weights ("blk.3.attn_q"). invalid_argument for a key that makes no sense.
    virtual Result<Graph> build(const GraphKey &key) const = 0;
};

/// A row of the table of architectures: `general.architecture` as the file writes it, and how to read such a file.
struct ArchitectureEntry {
    std::string_view name;
    /// Reads and checks hyperparameters and tensors; errors name the file and the key or tensor.
    Result<std::unique_ptr<Architecture>> (*read)(std::shared_ptr<const Gguf> gguf);
};

/// All architectures, by name.
std::span<const ArchitectureEntry *const> all_architectures();

/// Finds the file's architecture and reads it. unsupported: no such architecture; the message lists those there are.
Result<std::unique_ptr<Architecture>> read_architecture(std::shared_ptr<const Gguf> gguf);

}  // namespace tenon::llm
