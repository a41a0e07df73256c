// The llama architecture (Touvron et al. 2023, "LLaMA: Open and Efficient Foundation Language Models", and its
// successors with grouped-query attention): RMS norm, rotary positions, SwiGLU, output tied to the embedding where the
// file has no matrix of its own.
#include <fmt/format.h>

#include <cmath>

#include "llm/architecture.h"
#include "llm/decoder.h"
#include "llm/hyperparameters.h"

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
    Status read_shape(const Hyperparameters &hp);
    Status read_rope(const Hyperparameters &hp);
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
    const Hyperparameters hp(gguf_, "llama");
    TENON_TRY(read_shape(hp));
    TENON_TRY(read_rope(hp));
    return check_tensors();
}

Status Llama::read_shape(const Hyperparameters &hp) {
    // The upper limits are far above any model and keep every product of two of them within int64.
    TENON_ASSIGN(shape_.layers, hp.integer("block_count", 1, 1 << 14));
    TENON_ASSIGN(shape_.context_length, hp.integer("context_length", 1, 1 << 30));
    TENON_ASSIGN(shape_.width, hp.integer("embedding_length", 1, 1 << 24));
    TENON_ASSIGN(feed_forward_, hp.integer("feed_forward_length", 1, 1 << 26));
    TENON_ASSIGN(shape_.heads, hp.integer("attention.head_count", 1, 1 << 16));
    TENON_ASSIGN(shape_.kv_heads, hp.integer("attention.head_count_kv", 1, 1 << 16, shape_.heads));
    if (shape_.heads % shape_.kv_heads != 0)
        return Status::invalid_argument(fmt::format("{} is {}, which doesn't divide the {} heads of queries",
                                                    hp.where("attention.head_count_kv"), shape_.kv_heads,
                                                    shape_.heads));
    std::optional<int64_t> head_width;
    if (shape_.width % shape_.heads == 0) head_width = shape_.width / shape_.heads;
    TENON_ASSIGN(shape_.key_width, hp.integer("attention.key_length", 1, 1 << 16, head_width));
    TENON_ASSIGN(shape_.value_width, hp.integer("attention.value_length", 1, 1 << 16, head_width));
    TENON_ASSIGN(epsilon_, hp.number("attention.layer_norm_rms_epsilon", 0, 1));
    TENON_ASSIGN(const int64_t experts, hp.integer("expert_count", 0, 1 << 16, 0));
    if (experts > 0)
        return Status::unsupported(
            fmt::format("{} is {}: mixtures of experts aren't supported yet", hp.where("expert_count"), experts));
    return {};
}

Status Llama::read_rope(const Hyperparameters &hp) {
    TENON_ASSIGN(const int64_t dims, hp.integer("rope.dimension_count", 2, shape_.key_width, shape_.key_width));
    if (dims % 2 != 0)
        return Status::invalid_argument(
            fmt::format("{} is {}, expected an even number", hp.where("rope.dimension_count"), dims));
    TENON_ASSIGN(const std::string scaling, hp.text("rope.scaling.type", "linear"));
    TENON_ASSIGN(const float old_factor, hp.number("rope.scale_linear", 0, 1e6, 0.0f));
    TENON_ASSIGN(float factor, hp.number("rope.scaling.factor", 0, 1e6, old_factor));
    if (factor == 0 || scaling == "none") factor = 1;  // files write 0 for "none"
    const bool yarn = scaling == "yarn";
    if (!yarn && scaling != "linear" && scaling != "none")
        return Status::unsupported(
            fmt::format("{} is '{}'; supported: none, linear, yarn", hp.where("rope.scaling.type"), scaling));
    rope_.struct_size = TN_SIZE_PARAMS_ROPE;
    rope_.dims = static_cast<uint32_t>(dims);
    // Converters to GGUF reorder the rows of Q and K of this architecture so that a pair is two neighbours.
    rope_.pairing = TN_ROPE_ADJACENT;
    rope_.scale = 1.0f / factor;
    TENON_ASSIGN(rope_.base, hp.number("rope.freq_base", 1e-3, 1e12, 10000.0f));
    TENON_ASSIGN(rope_.attn_factor, hp.number("rope.scaling.attn_factor", 0, 1e6, 1.0f));
    TENON_ASSIGN(rope_.ext_factor, hp.number("rope.scaling.yarn_ext_factor", 0, 1e6, 1.0f));
    TENON_ASSIGN(rope_.beta_fast, hp.number("rope.scaling.yarn_beta_fast", 0, 1e6, 32.0f));
    TENON_ASSIGN(rope_.beta_slow, hp.number("rope.scaling.yarn_beta_slow", 0, 1e6, 1.0f));
    TENON_ASSIGN(const int64_t original,
                 hp.integer("rope.scaling.original_context_length", 1, 1 << 30, shape_.context_length));
    rope_.original_context = static_cast<uint32_t>(original);
    if (!yarn) rope_.ext_factor = 0;
    return {};
}

Status Llama::check_tensors() {
    TensorCheck check(gguf_);
    const GgufTensor *embedding = gguf_->find_tensor("token_embd.weight");
    shape_.vocabulary = embedding && embedding->shape.size() == 2 ? embedding->shape[0] : 1;
    TENON_TRY(check.need("token_embd.weight", {shape_.vocabulary, shape_.width}, Role::matrix));
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
