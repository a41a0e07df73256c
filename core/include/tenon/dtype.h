// Element types by their frozen ids (sdk/include/tenon/dtypes.def).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tenon {

/// An element type. The values are the ids of dtypes.def, which are those of the GGUF format.
enum class DType : uint32_t {
#define TN_DTYPE(id, NAME, name, block_elements, block_bytes) name = id,
#include "tenon/dtypes.def"
#undef TN_DTYPE
};

/// What the table says about one type. A plain (not block) type has block_elements = 1.
struct DTypeInfo {
    DType type;
    std::string_view name;   // "q4_1"
    int64_t block_elements;  // elements along the last dimension that share one block
    int64_t block_bytes;
};

/// All types of dtypes.def, by rising id.
std::span<const DTypeInfo> all_dtypes() noexcept;

/// The row of an id as read from a file or plugin; null where the id isn't known. Any thread.
const DTypeInfo *find_dtype(uint32_t id) noexcept;

/// The row of a type. A number that is none gets a row named "an unknown type", of 0 bytes.
const DTypeInfo &dtype_info(DType type) noexcept;

/// Bytes of `shape` (row-major, last dimension innermost) in canonical layout; nothing where a size is negative, the
/// last dimension isn't whole blocks, or the count overflows int64.
std::optional<int64_t> canonical_bytes(DType type, std::span<const int64_t> shape) noexcept;

}  // namespace tenon
