// Gemma 3 (Gemma Team 2025, "Gemma 3 Technical Report", arXiv:2503.19786), text only: embeddings scaled by the root of
// the width, RMS norms before and behind attention and feed-forward and on each head's queries and keys, GELU gates,
// and layers of two kinds: most look back over a window, each sixth over everything, with a RoPE base of its own.
#include <fmt/format.h>

#include <cmath>

#include "llm/architecture.h"
#include "llm/decoder.h"
#include "llm/decoder_parameters.h"

namespace tenon::llm {
namespace {

using Role = TensorCheck::Role;

class Gemma3 final : public Architecture {
public:
    explicit Gemma3(std::shared_ptr<const Gguf> gguf) : gguf_(std::move(gguf)) {}

    const ModelShape &shape() const override { return shape_; }
    Result<Graph> build(const GraphKey &key) const override;

    Status read();

private:
    Status read_parameters(const Hyperparameters &hp);
    Status check_tensors();
    Status check_layer(TensorCheck &check, int64_t layer) const;

    /// Whether the layer sees only the last `window_` positions.
    bool slides(int64_t layer) const { return window_ > 0 && (layer + 1) % period_ != 0; }
    ValueId attention(Decoder &decoder, ValueId x, int64_t layer) const;
    ValueId feed_forward(Decoder &decoder, ValueId x) const;
    ValueId norm(Decoder &decoder, ValueId x, std::string_view name) const;

    std::shared_ptr<const Gguf> gguf_;
    ModelShape shape_;
    int64_t feed_forward_ = 0;  // elements between up and down
    int64_t window_ = 0, period_ = 1;
    float epsilon_ = 0, attention_scale_ = 0, softcap_ = 0;  // softcap of the logits; 0: none
    tn_params_rope rope_{}, sliding_rope_{};
    bool tied_ = false;
};

Status Gemma3::read() {
    TENON_TRY(read_parameters(Hyperparameters(gguf_, "gemma3")));
    return check_tensors();
}

Status Gemma3::read_parameters(const Hyperparameters &hp) {
    TENON_ASSIGN(shape_, read_shape(hp));
    TENON_ASSIGN(feed_forward_, hp.integer("feed_forward_length", 1, 1 << 26));
    TENON_ASSIGN(epsilon_, hp.number("attention.layer_norm_rms_epsilon", 0, 1));
    TENON_ASSIGN(window_, hp.integer("attention.sliding_window", 0, 1 << 30, 0));
    TENON_ASSIGN(period_, hp.integer("attention.sliding_window_pattern", 1, 1 << 14, 6));
    TENON_ASSIGN(softcap_, hp.number("final_logit_softcapping", 0, 1e6, 0.0f));
    TENON_ASSIGN(rope_, read_rope(hp, shape_, TN_ROPE_HALVES));
    // Scaling stretches the layers that see everything; the others never look farther than they were trained for.
    sliding_rope_ = rope_;
    sliding_rope_.scale = sliding_rope_.attn_factor = 1;
    sliding_rope_.ext_factor = 0;
    TENON_ASSIGN(sliding_rope_.base, hp.number("rope.freq_base_swa", 1e-3, 1e12, 10000.0f));
    // The largest model, known by its layers, scales by the width that each head would have if they shared the model's.
    constexpr int64_t k_largest_layers = 62;
    const int64_t scaled_by = shape_.layers == k_largest_layers ? shape_.width / shape_.heads : shape_.key_width;
    attention_scale_ = static_cast<float>(1.0 / std::sqrt(static_cast<double>(scaled_by)));
    return {};
}

Status Gemma3::check_tensors() {
    TensorCheck check(gguf_);
    TENON_TRY(need_embedding(*gguf_, check, shape_));
    TENON_TRY(check.need("output_norm.weight", {shape_.width}, Role::vector));
    TENON_ASSIGN(const bool output, check.may_have("output.weight", {shape_.vocabulary, shape_.width}, Role::matrix));
    tied_ = !output;
    for (int64_t layer = 0; layer < shape_.layers; ++layer) TENON_TRY(check_layer(check, layer));
    return check.all_known();
}

Status Gemma3::check_layer(TensorCheck &check, int64_t layer) const {
    const ModelShape &s = shape_;
    const struct {
        std::string_view name;
        Shape shape;
    } tensors[] = {
        {"attn_norm", {s.width}},
        {"attn_q_norm", {s.key_width}},
        {"attn_k_norm", {s.key_width}},
        {"post_attention_norm", {s.width}},
        {"ffn_norm", {s.width}},
        {"post_ffw_norm", {s.width}},
        {"attn_q", {s.heads * s.key_width, s.width}},
        {"attn_k", {s.kv_heads * s.key_width, s.width}},
        {"attn_v", {s.kv_heads * s.value_width, s.width}},
        {"attn_output", {s.width, s.heads * s.value_width}},
        {"ffn_gate", {feed_forward_, s.width}},
        {"ffn_up", {feed_forward_, s.width}},
        {"ffn_down", {s.width, feed_forward_}},
    };
    for (const auto &[name, shape] : tensors)
        TENON_TRY(check.need(fmt::format("blk.{}.{}.weight", layer, name), shape,
                             shape.rank() == 1 ? Role::vector : Role::matrix));
    return {};
}

Result<Graph> Gemma3::build(const GraphKey &key) const {
    TENON_TRY(check_key(key));
    // With no logits asked for, the last layer only has its keys and values to leave behind.
    const bool head = key.rows > 0;
    Decoder decoder(*gguf_, shape_, key, head || shape_.layers > 1);
    GraphBuilder &b = decoder.builder();
    ValueId x = b.gather_rows(decoder.weight("token_embd.weight"), decoder.tokens(), "token_embd");
    x = b.affine(x, std::sqrt(static_cast<float>(shape_.width)), 0, "token_embd_scaled");
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
        decoder.enter_layer(layer);
        x = attention(decoder, x, layer);
        if (head || layer + 1 < shape_.layers) x = feed_forward(decoder, x);
    }
    decoder.leave_layers();
    if (head) {
        x = b.rms_norm(x, decoder.weight("output_norm.weight"), epsilon_, "output_norm");
        const ValueId matrix = decoder.weight(tied_ ? "token_embd.weight" : "output.weight");
        const std::string logits(io::k_logits);
        x = b.linear(x, matrix, k_no_value, softcap_ > 0 ? "output_uncapped" : logits);
        if (softcap_ > 0) x = b.affine(b.node(TN_OP_TANH, {b.affine(x, 1 / softcap_, 0)}), softcap_, 0, logits);
        b.output(x);
    }
    return std::move(b).finish();
}

ValueId Gemma3::norm(Decoder &decoder, ValueId x, std::string_view name) const {
    return decoder.builder().rms_norm(x, decoder.layer_weight(name), epsilon_, std::string(name));
}

ValueId Gemma3::attention(Decoder &decoder, ValueId x, int64_t layer) const {
    const ModelShape &s = shape_;
    const int64_t t = decoder.key().tokens;
    const bool last = layer + 1 == s.layers;
    GraphBuilder &b = decoder.builder();
    const auto rope = [&](ValueId heads, std::string name) {
        return b.rope(heads, decoder.pos(), k_no_value, slides(layer) ? sliding_rope_ : rope_, std::move(name));
    };

    const ValueId normed = norm(decoder, x, "attn_norm");
    const ValueId k = b.reshape(decoder.linear(normed, "attn_k"), {t, s.kv_heads, s.key_width});
    const ValueId v = b.reshape(decoder.linear(normed, "attn_v"), {t, s.kv_heads, s.value_width});
    const auto [k_cache, v_cache] = decoder.append(rope(norm(decoder, k, "attn_k_norm"), "attn_k_rope"), v);
    if (last && decoder.key().rows == 0) return x;

    const ValueId q = b.reshape(decoder.linear(normed, "attn_q"), {t, s.heads, s.key_width});
    tn_params_attention params{};
    params.struct_size = TN_SIZE_PARAMS_ATTENTION;
    params.scale = attention_scale_;
    params.window = slides(layer) ? static_cast<uint32_t>(window_) : 0;
    params.block_rows = static_cast<uint32_t>(k_cache_block_rows);
    ValueId mixed = b.attention(rope(norm(decoder, q, "attn_q_norm"), "attn_q_rope"), k_cache, v_cache,
                                decoder.kv_view(), k_no_value, params, "attn");
    mixed = b.reshape(mixed, {t, s.heads * s.value_width});
    if (last) {
        // From here on tokens don't see each other any more: only those whose logits are asked for go on.
        mixed = decoder.asked_rows(mixed, "attn_rows");
        x = decoder.asked_rows(x, "residual_rows");
    }
    return b.add(x, norm(decoder, decoder.linear(mixed, "attn_output"), "post_attention_norm"), "attn_residual");
}

ValueId Gemma3::feed_forward(Decoder &decoder, ValueId x) const {
    GraphBuilder &b = decoder.builder();
    const ValueId normed = norm(decoder, x, "ffn_norm");
    const ValueId gate = decoder.linear(normed, "ffn_gate"), up = decoder.linear(normed, "ffn_up");
    const ValueId inner = b.node(TN_OP_GEGLU, {gate, up}, {}, "ffn_geglu");
    return b.add(x, norm(decoder, decoder.linear(inner, "ffn_down"), "post_ffw_norm"), "ffn_residual");
}

Result<std::unique_ptr<Architecture>> read_gemma3(std::shared_ptr<const Gguf> gguf) {
    auto gemma = std::make_unique<Gemma3>(std::move(gguf));
    TENON_TRY(gemma->read());
    return std::unique_ptr<Architecture>(std::move(gemma));
}

}  // namespace

extern const ArchitectureEntry architecture_gemma3{"gemma3", read_gemma3};

}  // namespace tenon::llm
