#include "llm/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "llm/gguf_text.h"

namespace tenon::llm {

namespace {

struct Model {
    std::string_view name;  // `tokenizer.ggml.model`
    Result<std::shared_ptr<const Tokenizer>> (*make)(Vocabulary vocabulary);
};

constexpr Model k_models[] = {
    {"gpt2", make_byte_bpe},
};

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_gguf(std::shared_ptr<const Gguf> file) {
    constexpr std::string_view key = "tokenizer.ggml.model";
    TENON_ASSIGN(const auto name, file->get_string(key));
    const std::string path = escaped(file->path().native(), 4096);
    if (!name) return Status::invalid_argument(fmt::format("{}: {}: missing: the file has no tokenizer", path, key));
    for (const Model &model : k_models) {
        if (model.name != *name) continue;
        TENON_ASSIGN(Vocabulary vocabulary, Vocabulary::from_gguf(std::move(file)));
        return model.make(std::move(vocabulary));
    }
    std::string known;
    for (const Model &model : k_models) known += (known.empty() ? "" : ", ") + std::string(model.name);
    return Status::unsupported(
        fmt::format("{}: {}: tokenizer model '{}' isn't supported; supported: {} (byte-level BPE)", path, key,
                    escaped(*name), known));
}

Tokenizer::Tokenizer(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {
    for (int32_t id = 0; id < vocabulary_.size(); ++id) {
        max_piece_bytes_ = std::max(max_piece_bytes_, vocabulary_.text(id).size());
    }
}

Status Tokenizer::read_added_tokens(bool add_bos_by_default) {
    const Gguf &file = vocabulary_.file();
    const auto read = [&](const char *which, bool by_default, std::optional<int32_t> id) -> Result<bool> {
        const std::string key = fmt::format("tokenizer.ggml.add_{}_token", which);
        TENON_ASSIGN(const auto wanted, file.get_bool(key));
        if (wanted.value_or(false) && !id) {
            return Status::invalid_argument(fmt::format("{}: {} is true, but tokenizer.ggml.{}_token_id is missing",
                                                        escaped(file.path().native(), 4096), key, which));
        }
        return wanted.value_or(by_default && id.has_value());
    };
    TENON_ASSIGN(adds_bos_, read("bos", add_bos_by_default, bos()));
    TENON_ASSIGN(adds_eos_, read("eos", false, eos()));
    return {};
}

std::string Tokenizer::piece(int32_t id) const {
    std::string out;
    append_piece(id, out);
    return out;
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids) const {
    std::string out;
    for (int32_t id : ids) {
        if (!vocabulary_.contains(id)) {
            return Status::invalid_argument(
                fmt::format("token {} isn't in the vocabulary, which has {} tokens", id, vocabulary_.size()));
        }
        append_piece(id, out);
    }
    return out;
}

bool Tokenizer::is_end_of_generation(int32_t id) const {
    const auto ids = vocabulary_.end_of_generation();
    return std::binary_search(ids.begin(), ids.end(), id);
}

bool Tokenizer::is_control(int32_t id) const {
    return vocabulary_.contains(id) && vocabulary_.type(id) == TokenType::control;
}

}  // namespace tenon::llm
