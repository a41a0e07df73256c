// The standard element types and ops as tables: what dtypes.def and ops.def say, by id and by name.
#ifndef TENON_PLUGIN_TYPES_HPP
#define TENON_PLUGIN_TYPES_HPP

#include <string_view>

#include "tenon/abi.h"
#include "tenon/ops.h"

namespace tenon::plugin {

/// A row of dtypes.def.
struct TypeInfo {
    uint32_t id;
    std::string_view name;
    uint32_t block_elements, block_bytes;  // 1 element a block for plain types

    bool is_block() const noexcept { return block_elements > 1; }
};

/// 0 for a type that this header doesn't list.
inline const TypeInfo *find_type(uint32_t id) noexcept {
    switch (id) {
#define TN_DTYPE(id, NAME, name, block_elements, block_bytes)                     \
    case id: {                                                                    \
        static constexpr TypeInfo row = {id, #name, block_elements, block_bytes}; \
        return &row;                                                              \
    }
#include "tenon/dtypes.def"
#undef TN_DTYPE
        default: return nullptr;
    }
}

inline const TypeInfo *find_type(std::string_view name) noexcept {
#define TN_DTYPE(id, NAME, text, block_elements, block_bytes) \
    if (name == #text) return find_type(uint32_t{id});
#include "tenon/dtypes.def"
#undef TN_DTYPE
    return nullptr;
}

enum class OpKind : uint8_t { kView, kPrimitive, kComposite, kReserved };
enum class OpAlias : uint8_t { kNone, kMay0, kMust0 };

/// A row of ops.def.
struct OpInfo {
    uint32_t id;
    std::string_view name;
    OpKind kind;
    uint32_t min_inputs, max_inputs, outputs;
    uint64_t params_bytes;  // 0: the op has none
    OpAlias alias;
};

namespace detail {
inline constexpr OpKind kOpKindVIEW = OpKind::kView, kOpKindPRIMITIVE = OpKind::kPrimitive,
                        kOpKindCOMPOSITE = OpKind::kComposite, kOpKindRESERVED = OpKind::kReserved;
inline constexpr OpAlias kOpAliasNONE = OpAlias::kNone, kOpAliasMAY0 = OpAlias::kMay0, kOpAliasMUST0 = OpAlias::kMust0;
}  // namespace detail

/// 0 for an op that this header doesn't list; vendor ops among them.
inline const OpInfo *find_op(uint32_t id) noexcept {
    switch (id) {
#define TN_OP(id, NAME, name, KIND, min_inputs, max_inputs, outputs, PARAMS, ALIAS)                            \
    case id: {                                                                                                 \
        static constexpr OpInfo row = {id,         #name,   detail::kOpKind##KIND,   min_inputs,               \
                                       max_inputs, outputs, TN_SIZE_PARAMS_##PARAMS, detail::kOpAlias##ALIAS}; \
        return &row;                                                                                           \
    }
#include "tenon/ops.def"
#undef TN_OP
        default: return nullptr;
    }
}

inline const OpInfo *find_op(std::string_view name) noexcept {
#define TN_OP(id, NAME, text, KIND, min_inputs, max_inputs, outputs, PARAMS, ALIAS) \
    if (name == #text) return find_op(uint32_t{id});
#include "tenon/ops.def"
#undef TN_OP
    return nullptr;
}

}  // namespace tenon::plugin
#endif
