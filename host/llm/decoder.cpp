#include "llm/decoder.h"

#include <fmt/format.h>

namespace tenon::llm {

std::string cache_name(std::string_view kind, int64_t layer) {
    return fmt::format("cache_{}.{}", kind, layer);
}

Status check_key(const GraphKey &key) {
    // Positions and rows travel as i32.
    constexpr int64_t k_most = int64_t{1} << 30;
    const auto whole_blocks = [](int64_t rows) { return rows > 0 && rows <= k_most && rows % k_cache_block_rows == 0; };
    if (key.tokens > 0 && key.tokens <= k_most && key.rows >= 0 && key.rows <= key.tokens &&
        whole_blocks(key.capacity) && whole_blocks(key.cache_rows) && key.capacity <= key.cache_rows)
        return {};
    return Status::invalid_argument(
        fmt::format("no graph has {} tokens, {} rows of logits and a capacity of {} positions in a cache of {} (blocks "
                    "of {})",
                    key.tokens, key.rows, key.capacity, key.cache_rows, k_cache_block_rows));
}

Decoder::Decoder(const Gguf &gguf, const ModelShape &shape, const GraphKey &key, bool attends)
    : gguf_(gguf), shape_(shape), key_(key) {
    builder_.set_precision(key.precision);
    const auto input = [&](std::string_view name, Shape sizes) {
        return builder_.input(std::string(name), DType::i32, sizes);
    };
    tokens_ = input(io::k_tokens, {key.tokens});
    pos_ = input(io::k_pos, {key.tokens});
    cache_row_ = input(io::k_cache_row, {key.tokens});
    if (attends)
        kv_view_ = {.q_pos = pos_,
                    .seq = input(io::k_seq, {key.tokens}),
                    .blocks = input(io::k_blocks, {1, key.capacity / k_cache_block_rows}),
                    .kv_start = input(io::k_kv_start, {1}),
                    .kv_len = input(io::k_kv_len, {1})};
    if (key.rows > 0 && key.rows < key.tokens) out_rows_ = input(io::k_out_rows, {key.rows});
}

void Decoder::enter_layer(int64_t layer) {
    layer_ = layer;
    scope_ = fmt::format("blk.{}.", layer);
    builder_.set_scope(scope_);
}

void Decoder::leave_layers() {
    scope_.clear();
    builder_.set_scope({});
}

std::string Decoder::full_name(std::string_view name, std::string_view suffix) const {
    return fmt::format("{}{}{}", scope_, name, suffix);
}

ValueId Decoder::weight(const std::string &name) {
    if (const auto found = weights_.find(name); found != weights_.end()) return found->second;
    const GgufTensor *tensor = gguf_.find_tensor(name);
    if (!tensor) return k_no_value;
    const ValueId id = builder_.weight(name, tensor->type, Shape(std::span<const int64_t>(tensor->shape)));
    weights_.emplace(name, id);
    return id;
}

ValueId Decoder::linear(ValueId x, std::string_view name) {
    return builder_.linear(x, layer_weight(name), weight(full_name(name, ".bias")), std::string(name));
}

std::pair<ValueId, ValueId> Decoder::append(ValueId keys, ValueId values) {
    const DType type = key_.precision == Precision::exact ? DType::f32 : DType::f16;
    const auto cache = [&](std::string_view kind, ValueId rows, int64_t width) {
        const ValueId state = builder_.state(cache_name(kind, layer_), type, {key_.cache_rows, shape_.kv_heads, width});
        return builder_.kv_append(state, rows, cache_row_, fmt::format("cache_{}", kind));
    };
    return {cache("k", keys, shape_.key_width), cache("v", values, shape_.value_width)};
}

ValueId Decoder::asked_rows(ValueId x, std::string name) {
    return out_rows_ == k_no_value ? x : builder_.gather_rows(x, out_rows_, std::move(name));
}

}  // namespace tenon::llm
