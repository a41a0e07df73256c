#include "llm/architecture.h"

#include <fmt/format.h>

namespace tenon::llm {

#define TENON_ARCHITECTURE(name) extern const ArchitectureEntry architecture_##name;
#include "architectures.inc"
#undef TENON_ARCHITECTURE

std::span<const ArchitectureEntry *const> all_architectures() {
    static constexpr const ArchitectureEntry *k_table[] = {
#define TENON_ARCHITECTURE(name) &architecture_##name,
#include "architectures.inc"
#undef TENON_ARCHITECTURE
    };
    return k_table;
}

Result<std::unique_ptr<Architecture>> read_architecture(std::shared_ptr<const Gguf> gguf) {
    const std::string file = gguf->path().string();
    TENON_ASSIGN(const std::optional<std::string_view> name, gguf->get_string("general.architecture"));
    if (!name)
        return Status::invalid_argument(fmt::format(
            "{}: the key 'general.architecture' is missing: the file doesn't say which model it holds", file));
    std::string known;
    for (const ArchitectureEntry *entry : all_architectures()) {
        if (entry->name == *name) return entry->read(std::move(gguf));
        known += fmt::format("{}{}", known.empty() ? "" : ", ", entry->name);
    }
    return Status::unsupported(fmt::format("{}: the architecture '{}' isn't supported; known: {}", file, *name, known));
}

}  // namespace tenon::llm
