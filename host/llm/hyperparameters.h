// What architectures read from a GGUF file, with every number's range and every tensor's shape and type checked, so
// that a damaged or unforeseen file ends in a message and never in a wrong graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "llm/gguf.h"
#include "tenon/status.h"
#include "tenon/tensor.h"

namespace tenon::llm {

/// Reads `<architecture>.<key>` entries. Errors name file and key. One thread.
class Hyperparameters {
public:
    Hyperparameters(std::shared_ptr<const Gguf> gguf, std::string architecture);

    /// An integer in [min, max]; `otherwise` where the key is absent, an error where that is nothing. A list with one
    /// value a layer is taken if all are equal, else unsupported.
    Result<int64_t> integer(std::string_view key, int64_t min, int64_t max,
                            std::optional<int64_t> otherwise = std::nullopt) const;
    /// A finite number in [min, max]; integers are taken too.
    Result<float> number(std::string_view key, double min, double max,
                         std::optional<float> otherwise = std::nullopt) const;
    /// Text; `otherwise` where the key is absent.
    Result<std::string> text(std::string_view key, std::string_view otherwise) const;

    /// "FILE: key 'llama.x'", to begin a message with.
    std::string where(std::string_view key) const;

private:
    std::string full(std::string_view key) const;

    std::shared_ptr<const Gguf> gguf_;
    std::string architecture_;
};

/// Checks tensors one by one and remembers which the architecture knows. One thread.
class TensorCheck {
public:
    /// What a tensor is used for, which decides the types that it may have.
    enum class Role {
        matrix,  // any type that holds numbers of a weight: plain floats and quantised blocks
        vector,  // f32, f16 or bf16: norms, biases
        f32,     // f32 alone: RoPE's factors
    };
    explicit TensorCheck(std::shared_ptr<const Gguf> gguf) : gguf_(std::move(gguf)) {}

    /// The tensor must be there with this shape (row-major). not_found or invalid_argument, naming file, tensor,
    /// expected and found.
    Status need(const std::string &name, const Shape &shape, Role role);
    /// The same for a tensor that may be absent; answers whether it is there.
    Result<bool> may_have(const std::string &name, const Shape &shape, Role role);
    /// unsupported if the file holds a tensor that was never asked about: the result would be another model's.
    Status all_known() const;

private:
    std::shared_ptr<const Gguf> gguf_;
    std::set<std::string, std::less<>> known_;
};

}  // namespace tenon::llm
