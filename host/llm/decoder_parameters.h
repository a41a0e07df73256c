// Hyperparameters that decoder architectures have in common, read and checked alike.
#pragma once

#include "llm/architecture.h"
#include "llm/hyperparameters.h"
#include "tenon/ops.h"

namespace tenon::llm {

/// Layers, context, width and heads; not the vocabulary, which is the embedding's (need_embedding).
Result<ModelShape> read_shape(const Hyperparameters &hp);

/// RoPE with its scaling, linear or by YaRN, and its base. `pairing`: TN_ROPE_, as the architecture's files order rows.
Result<tn_params_rope> read_rope(const Hyperparameters &hp, const ModelShape &shape, uint32_t pairing);

/// Checks token_embd.weight [vocabulary, width] and sets the vocabulary.
Status need_embedding(const Gguf &gguf, TensorCheck &check, ModelShape &shape);

}  // namespace tenon::llm
