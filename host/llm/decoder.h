// What decoder architectures share when they build a graph: the inputs of a bucket of tokens, weights by their names in
// the file, the KV cache, and the choice of the tokens whose logits are asked for.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "llm/architecture.h"

namespace tenon::llm {

/// Whether a key makes sense: sizes positive, rows <= tokens, capacity and cache in whole blocks.
Status check_key(const GraphKey &key);

/// Name of a layer's cache state: "cache_k.3".
std::string cache_name(std::string_view kind, int64_t layer);

/// A graph in the making. Made for one key, used by one Architecture::build; failures wait in the builder. One thread.
class Decoder {
public:
    /// `attends`: whether any layer looks at the cache; if not, the graph has no inputs for that.
    Decoder(const Gguf &gguf, const ModelShape &shape, const GraphKey &key, bool attends);

    GraphBuilder &builder() { return builder_; }
    const GraphKey &key() const { return key_; }
    ValueId tokens() const { return tokens_; }
    ValueId pos() const { return pos_; }
    const GraphBuilder::KvView &kv_view() const { return kv_view_; }

    /// Weights and nodes of the calls that follow are named "blk.LAYER.x".
    void enter_layer(int64_t layer);
    void leave_layers();

    /// A tensor of the file by its whole name, once a graph; k_no_value where the file has none.
    ValueId weight(const std::string &name);
    /// NAME.weight of the layer.
    ValueId layer_weight(std::string_view name) { return weight(full_name(name, ".weight")); }
    /// x [..., in] times NAME.weight [out, in], plus NAME.bias where the file has one; the node is NAME.
    ValueId linear(ValueId x, std::string_view name);
    /// Writes keys and values [tokens, kv_heads, width] into the layer's cache and answers both as they are then.
    std::pair<ValueId, ValueId> append(ValueId keys, ValueId values);
    /// x [tokens, n] -> [rows, n], the rows whose logits are asked for.
    ValueId asked_rows(ValueId x, std::string name);

private:
    std::string full_name(std::string_view name, std::string_view suffix) const;

    const Gguf &gguf_;
    const ModelShape &shape_;
    GraphKey key_;
    GraphBuilder builder_;
    ValueId tokens_, pos_, cache_row_, out_rows_ = k_no_value;
    GraphBuilder::KvView kv_view_{k_no_value, k_no_value, k_no_value, k_no_value, k_no_value};
    std::map<std::string, ValueId, std::less<>> weights_;
    std::string scope_;
    int64_t layer_ = 0;
};

}  // namespace tenon::llm
