#include "llm/decoder_parameters.h"

#include <fmt/format.h>

namespace tenon::llm {

Result<ModelShape> read_shape(const Hyperparameters &hp) {
    ModelShape shape;
    // The upper limits are far above any model and keep every product of two of them within int64.
    TENON_ASSIGN(shape.layers, hp.integer("block_count", 1, 1 << 14));
    TENON_ASSIGN(shape.context_length, hp.integer("context_length", 1, 1 << 30));
    TENON_ASSIGN(shape.width, hp.integer("embedding_length", 1, 1 << 24));
    TENON_ASSIGN(shape.heads, hp.integer("attention.head_count", 1, 1 << 16));
    TENON_ASSIGN(shape.kv_heads, hp.integer("attention.head_count_kv", 1, 1 << 16, shape.heads));
    if (shape.heads % shape.kv_heads != 0)
        return Status::invalid_argument(fmt::format("{} is {}, which doesn't divide the {} heads of queries",
                                                    hp.where("attention.head_count_kv"), shape.kv_heads, shape.heads));
    std::optional<int64_t> head_width;
    if (shape.width % shape.heads == 0) head_width = shape.width / shape.heads;
    TENON_ASSIGN(shape.key_width, hp.integer("attention.key_length", 1, 1 << 16, head_width));
    TENON_ASSIGN(shape.value_width, hp.integer("attention.value_length", 1, 1 << 16, head_width));
    return shape;
}

Result<tn_params_rope> read_rope(const Hyperparameters &hp, const ModelShape &shape, uint32_t pairing) {
    TENON_ASSIGN(const int64_t dims, hp.integer("rope.dimension_count", 2, shape.key_width, shape.key_width));
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
    tn_params_rope rope{};
    rope.struct_size = TN_SIZE_PARAMS_ROPE;
    rope.dims = static_cast<uint32_t>(dims);
    rope.pairing = pairing;
    rope.scale = 1.0f / factor;
    TENON_ASSIGN(rope.base, hp.number("rope.freq_base", 1e-3, 1e12, 10000.0f));
    TENON_ASSIGN(rope.attn_factor, hp.number("rope.scaling.attn_factor", 0, 1e6, 1.0f));
    TENON_ASSIGN(rope.ext_factor, hp.number("rope.scaling.yarn_ext_factor", 0, 1e6, 1.0f));
    TENON_ASSIGN(rope.beta_fast, hp.number("rope.scaling.yarn_beta_fast", 0, 1e6, 32.0f));
    TENON_ASSIGN(rope.beta_slow, hp.number("rope.scaling.yarn_beta_slow", 0, 1e6, 1.0f));
    TENON_ASSIGN(const int64_t original,
                 hp.integer("rope.scaling.original_context_length", 1, 1 << 30, shape.context_length));
    rope.original_context = static_cast<uint32_t>(original);
    if (!yarn) rope.ext_factor = 0;
    return rope;
}

Status need_embedding(const Gguf &gguf, TensorCheck &check, ModelShape &shape) {
    constexpr const char *k_name = "token_embd.weight";
    const GgufTensor *embedding = gguf.find_tensor(k_name);
    shape.vocabulary = embedding && embedding->shape.size() == 2 ? embedding->shape[0] : 1;
    return check.need(k_name, {shape.vocabulary, shape.width}, TensorCheck::Role::matrix);
}

}  // namespace tenon::llm
