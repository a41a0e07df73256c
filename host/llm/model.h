// A model made ready for a session's devices: the file, its tokenizer and architecture, and its weights and KV cache in
// the memory where the scheduler wants them. Weights are used where the file is mapped, if the device can do that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "llm/architecture.h"
#include "llm/gguf.h"
#include "llm/tokenizer/tokenizer.h"
#include "tenon/session.h"
#include "tenon/status.h"

namespace tenon::llm {

/// Told while a model is made ready, before and after each part of a stage: what the stage is ("loading weights"), how
/// much of it is done, and how much there is, in the stage's own unit. A failure ends the loading with it.
using LoadProgress = std::function<Status(std::string_view stage, uint64_t done, uint64_t total)>;

struct ModelOptions {
    /// Tokens that the KV cache holds; 0: what the model was trained for, at most 4096.
    int64_t context = 0;
    Precision precision = Precision::fast;
    /// Layers that don't run on the session's last device, as place_model takes them (llm/offload.h).
    std::optional<int64_t> offload;
    /// Told of each tensor, and of pieces of large ones where they are copied, in bytes of weights.
    LoadProgress progress;
};

/// Bytes of a loaded model.
struct ModelMemory {
    uint64_t mapped_bytes = 0;          // weights used where the file is mapped
    uint64_t copied_bytes = 0;          // weights copied into devices' memory
    uint64_t cache_bytes = 0;           // keys and values, for the whole context
    uint64_t bytes_read_per_token = 0;  // weights that one token's forward pass has to read
};

/// A model file before any device is asked for: what can be known, and refused, at once.
struct ModelFile {
    std::shared_ptr<const Gguf> gguf;
    std::shared_ptr<const Tokenizer> tokenizer;
    std::shared_ptr<const Architecture> architecture;

    /// Opens and checks. Errors name the file and what is wrong in it.
    static Result<ModelFile> open(const std::filesystem::path &path);
};

/// Tokens of context for a model trained for `trained`: `asked`, or if that is 0 what ModelOptions::context says.
/// invalid_argument: below 0 or so large that positions don't fit their type.
Result<int64_t> choose_context(int64_t asked, int64_t trained);

/// A loaded model. Must outlive every executable that was prepared with its tensors: they refer to the mapped file.
class Model {
public:
    /// Places, maps or copies the weights, and makes an empty KV cache. All or nothing. invalid_argument: a context
    /// that can't be; unsupported names a tensor that no device computes with; out_of_memory what there was no room
    /// for.
    static Result<std::unique_ptr<Model>> load(ModelFile file, Session &session, const ModelOptions &options);
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    const Gguf &gguf() const { return *file_.gguf; }
    const Tokenizer &tokenizer() const { return *file_.tokenizer; }
    const Architecture &architecture() const { return *file_.architecture; }
    const ModelShape &shape() const { return file_.architecture->shape(); }

    /// Tokens that fit.
    int64_t context() const { return context_; }
    /// The key of a graph over this model's cache, with its whole capacity.
    GraphKey key(int64_t tokens, int64_t rows) const;
    /// Whether attention runs through its decomposition on some device, and so pays for a cache's whole capacity.
    bool capacity_matters() const { return capacity_matters_; }
    /// Weights and caches by name, as Session::prepare wants them.
    const TensorMap &tensors() const { return tensors_; }
    const ModelMemory &memory() const { return memory_; }

private:
    class Loader;
    Model() = default;

    ModelFile file_;  // first in, last out: tensors refer to its mapping
    int64_t context_ = 0, cache_rows_ = 0;
    bool capacity_matters_ = false;
    Precision precision_ = Precision::fast;
    TensorMap tensors_;
    ModelMemory memory_;
};

}  // namespace tenon::llm
