// The llama architecture (Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", and its
// successors with grouped-query attention): RMS norm, rotary positions, SwiGLU, output tied to the embedding where the
// file has no matrix of its own.
#include <fmt/format.h>

#include <cmath>

#include "llm/architecture.h"
#include "llm/decoder.h"
#include "llm/decoder_parameters.h"

namespace tenon::llm {
namespace {

using Role = TensorCheck::Role;

class Llama final : public Architecture {
public:
    explicit Llama(std::shared_ptr<const Gguf> gguf) : gguf_(std::move(gguf)) {}

    const ModelShape &shape() const override { return shape_; }
    Result<Graph> build(const GraphKey &key) const override;

    Status read();

private:
    Status read_parameters(const Hyperparameters &hp);
    Status check_tensors();
    Status check_layer(TensorCheck &check, int64_t layer) const;

    ValueId attention(Decoder &decoder, ValueId x, bool last) const;
    ValueId feed_forward(Decoder &decoder, ValueId x) const;

    std::shared_ptr<const Gguf> gguf_;
    ModelShape shape_;
    int64_t feed_forward_ = 0;  // elements between up and down
    float epsilon_ = 0;
    tn_params_rope rope_{};
    bool rope_factors_ = false, tied_ = false;
};

Status Llama::read() {
    TENON_TRY(read_parameters(Hyperparameters(gguf_, "llama")));
    return check_tensors();
}

Status Llama::read_parameters(const Hyperparameters &hp) {
    TENON_ASSIGN(shape_, read_shape(hp));
    // Converters to GGUF reorder the rows of Q and K of this architecture so that a pair is two neighbours.
    TENON_ASSIGN(rope_, read_rope(hp, shape_, TN_ROPE_ADJACENT));
    TENON_ASSIGN(feed_forward_, hp.integer("feed_forward_length", 1, 1 << 26));
    TENON_ASSIGN(epsilon_, hp.number("attention.layer_norm_rms_epsilon", 0, 1));
    TENON_ASSIGN(const int64_t experts, hp.integer("expert_count", 0, 1 << 16, 0));
    if (experts > 0)
        return Status::unsupported(
            fmt::format("{} is {}: mixtures of experts aren't supported yet", hp.where("expert_count"), experts));
    return {};
}

Status Llama::check_tensors() {
    TensorCheck check(gguf_);
    TENON_TRY(need_embedding(*gguf_, check, shape_));
    TENON_TRY(check.need("output_norm.weight", {shape_.width}, Role::vector));
    TENON_ASSIGN(const bool output, check.may_have("output.weight", {shape_.vocabulary, shape_.width}, Role::matrix));
    tied_ = !output;
    TENON_ASSIGN(rope_factors_, check.may_have("rope_freqs.weight", {rope_.dims / 2}, Role::f32));
    for (int64_t layer = 0; layer < shape_.layers; ++layer) TENON_TRY(check_layer(check, layer));
    return check.all_known();
}

Status Llama::check_layer(TensorCheck &check, int64_t layer) const {
    const ModelShape &s = shape_;
    const std::string scope = fmt::format("blk.{}.", layer);
    TENON_TRY(check.need(scope + "attn_norm.weight", {s.width}, Role::vector));
    TENON_TRY(check.need(scope + "ffn_norm.weight", {s.width}, Role::vector));
    const struct {
        std::string_view name;
        int64_t out, in;
    } matrices[] = {
        {"attn_q", s.heads * s.key_width, s.width},
        {"attn_k", s.kv_heads * s.key_width, s.width},
        {"attn_v", s.kv_heads * s.value_width, s.width},
        {"attn_output", s.width, s.heads * s.value_width},
        {"ffn_gate", feed_forward_, s.width},
        {"ffn_up", feed_forward_, s.width},
        {"ffn_down", s.width, feed_forward_},
    };
    for (const auto &[name, out, in] : matrices) {
        TENON_TRY(check.need(fmt::format("{}{}.weight", scope, name), {out, in}, Role::matrix));
        TENON_TRY(check.may_have(fmt::format("{}{}.bias", scope, name), {out}, Role::vector).status());
    }
    return {};
}

Result<Graph> Llama::build(const GraphKey &key) const {
    TENON_TRY(check_key(key));
    // With no logits asked for, the last layer only has its keys and values to leave behind.
    const bool head = key.rows > 0;
    Decoder decoder(*gguf_, shape_, key, head || shape_.layers > 1);
    GraphBuilder &b = decoder.builder();
    ValueId x = b.gather_rows(decoder.weight("token_embd.weight"), decoder.tokens(), "token_embd");
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
        const bool last = layer + 1 == shape_.layers;
        decoder.enter_layer(layer);
        x = attention(decoder, x, last);
        if (!last || head) x = feed_forward(decoder, x);
    }
    decoder.leave_layers();
    if (head) {
        x = b.rms_norm(x, decoder.weight("output_norm.weight"), epsilon_, "output_norm");
        const ValueId matrix = decoder.weight(tied_ ? "token_embd.weight" : "output.weight");
        b.output(b.linear(x, matrix, k_no_value, std::string(io::k_logits)));
    }
    return std::move(b).finish();
}

ValueId Llama::attention(Decoder &decoder, ValueId x, bool last) const {
    const ModelShape &s = shape_;
    const int64_t t = decoder.key().tokens;
    GraphBuilder &b = decoder.builder();
    const auto rope = [&](ValueId heads, std::string name) {
        const ValueId factors = rope_factors_ ? decoder.weight("rope_freqs.weight") : k_no_value;
        return b.rope(heads, decoder.pos(), factors, rope_, std::move(name));
    };

    const ValueId normed = b.rms_norm(x, decoder.layer_weight("attn_norm"), epsilon_, "attn_norm");
    const ValueId k = b.reshape(decoder.linear(normed, "attn_k"), {t, s.kv_heads, s.key_width});
    const ValueId v = b.reshape(decoder.linear(normed, "attn_v"), {t, s.kv_heads, s.value_width});
    const auto [k_cache, v_cache] = decoder.append(rope(k, "attn_k_rope"), v);
    if (last && decoder.key().rows == 0) return x;

    const ValueId q = b.reshape(decoder.linear(normed, "attn_q"), {t, s.heads, s.key_width});
    tn_params_attention params{};
    params.struct_size = TN_SIZE_PARAMS_ATTENTION;
    params.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.key_width)));
    params.block_rows = static_cast<uint32_t>(k_cache_block_rows);
    ValueId mixed =
        b.attention(rope(q, "attn_q_rope"), k_cache, v_cache, decoder.kv_view(), k_no_value, params, "attn");
    mixed = b.reshape(mixed, {t, s.heads * s.value_width});
    if (last) {
        // From here on tokens don't see each other any more: only those whose logits are asked for go on.
        mixed = decoder.asked_rows(mixed, "attn_rows");
        x = decoder.asked_rows(x, "residual_rows");
    }
    return b.add(x, decoder.linear(mixed, "attn_output"), "attn_residual");
}

ValueId Llama::feed_forward(Decoder &decoder, ValueId x) const {
    GraphBuilder &b = decoder.builder();
    const ValueId normed = b.rms_norm(x, decoder.layer_weight("ffn_norm"), epsilon_, "ffn_norm");
    const ValueId gate = decoder.linear(normed, "ffn_gate"), up = decoder.linear(normed, "ffn_up");
    return b.add(x, decoder.linear(b.swiglu(gate, up, "ffn_swiglu"), "ffn_down"), "ffn_residual");
}

Result<std::unique_ptr<Architecture>> read_llama(std::shared_ptr<const Gguf> gguf) {
    auto llama = std::make_unique<Llama>(std::move(gguf));
    TENON_TRY(llama->read());
    return std::unique_ptr<Architecture>(std::move(llama));
}

}  // namespace

extern const ArchitectureEntry architecture_llama{"llama", read_llama};

}  // namespace tenon::llm
