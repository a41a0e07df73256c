#include "llm/hyperparameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::llm {

Hyperparameters::Hyperparameters(std::shared_ptr<const Gguf> gguf, std::string architecture)
    : gguf_(std::move(gguf)), architecture_(std::move(architecture)) {}

std::string Hyperparameters::full(std::string_view key) const {
    return fmt::format("{}.{}", architecture_, key);
}

std::string Hyperparameters::where(std::string_view key) const {
    return fmt::format("{}: key '{}'", gguf_->path().string(), full(key));
}

Result<int64_t> Hyperparameters::integer(std::string_view key, int64_t min, int64_t max,
                                         std::optional<int64_t> otherwise) const {
    int64_t value = 0;
    const GgufEntry *entry = gguf_->find(full(key));
    if (!entry) {
        if (otherwise) return *otherwise;
        return Status::invalid_argument(fmt::format("{} is missing", where(key)));
    }
    if (std::holds_alternative<GgufArray>(entry->value)) {
        TENON_ASSIGN(const auto list, gguf_->get_ints(full(key)));
        if (!list || list->empty()) return Status::invalid_argument(fmt::format("{} is an empty list", where(key)));
        if (std::ranges::any_of(*list, [&](int64_t item) { return item != list->front(); }))
            return Status::unsupported(
                fmt::format("{} differs from layer to layer, which isn't supported for this architecture", where(key)));
        value = list->front();
    } else {
        TENON_ASSIGN(const auto read, gguf_->get_uint(full(key)));
        value = static_cast<int64_t>(std::min<uint64_t>(*read, std::numeric_limits<int64_t>::max()));
    }
    if (value < min || value > max)
        return Status::invalid_argument(fmt::format("{} is {}, expected {} to {}", where(key), value, min, max));
    return value;
}

Result<float> Hyperparameters::number(std::string_view key, double min, double max,
                                      std::optional<float> otherwise) const {
    const GgufEntry *entry = gguf_->find(full(key));
    if (!entry) {
        if (otherwise) return *otherwise;
        return Status::invalid_argument(fmt::format("{} is missing", where(key)));
    }
    double value = 0;
    if (const auto *whole = std::get_if<uint64_t>(&entry->value)) {
        value = static_cast<double>(*whole);
    } else {
        TENON_ASSIGN(const auto read, gguf_->get_float(full(key)));
        value = *read;
    }
    if (!(value >= min && value <= max))  // also refuses NaN
        return Status::invalid_argument(fmt::format("{} is {}, expected {} to {}", where(key), value, min, max));
    return static_cast<float>(value);
}

Result<std::string> Hyperparameters::text(std::string_view key, std::string_view otherwise) const {
    TENON_ASSIGN(const auto read, gguf_->get_string(full(key)));
    return std::string(read.value_or(otherwise));
}

namespace {

bool fits(TensorCheck::Role role, DType type) {
    const bool vector = type == DType::f32 || type == DType::f16 || type == DType::bf16;
    switch (role) {
        case TensorCheck::Role::f32: return type == DType::f32;
        case TensorCheck::Role::vector: return vector;
        case TensorCheck::Role::matrix: return vector || dtype_info(type).block_elements > 1;
    }
    return false;
}

std::string_view types_of(TensorCheck::Role role) {
    switch (role) {
        case TensorCheck::Role::f32: return "f32";
        case TensorCheck::Role::vector: return "f32, f16 or bf16";
        case TensorCheck::Role::matrix: return "f32, f16, bf16 or a quantised type";
    }
    return "";
}

}  // namespace

Result<bool> TensorCheck::may_have(const std::string &name, const Shape &shape, Role role) {
    known_.insert(name);
    const GgufTensor *tensor = gguf_->find_tensor(name);
    if (!tensor) return false;
    const std::string where = fmt::format("{}: tensor '{}'", gguf_->path().string(), name);
    if (const Shape found{std::span<const int64_t>(tensor->shape)}; !(found == shape))
        return Status::invalid_argument(
            fmt::format("{} has shape {}, expected {}", where, to_string(found), to_string(shape)));
    if (!fits(role, tensor->type))
        return Status::invalid_argument(
            fmt::format("{} has type {}, expected {}", where, dtype_info(tensor->type).name, types_of(role)));
    return true;
}

Status TensorCheck::need(const std::string &name, const Shape &shape, Role role) {
    TENON_ASSIGN(const bool there, may_have(name, shape, role));
    if (there) return {};
    return Status::not_found(fmt::format("{}: tensor '{}' is missing; expected {} of shape {}", gguf_->path().string(),
                                         name, types_of(role), to_string(shape)));
}

Status TensorCheck::all_known() const {
    for (const GgufTensor &tensor : gguf_->tensors())
        if (!known_.contains(tensor.name))
            return Status::unsupported(
                fmt::format("{}: tensor '{}' has no place in this architecture; without it the model would compute "
                            "something else",
                            gguf_->path().string(), tensor.name));
    return {};
}

}  // namespace tenon::llm
