#include "tenon/dtype.h"

#include <algorithm>
#include <array>

namespace tenon {
namespace {

constexpr auto k_types = std::to_array<DTypeInfo>({
#define TN_DTYPE(id, NAME, name, block_elements, block_bytes) {DType::name, #name, block_elements, block_bytes},
#include "tenon/dtypes.def"
#undef TN_DTYPE
});
static_assert(std::ranges::is_sorted(k_types, {}, &DTypeInfo::type), "find_dtype searches by halves");

}  // namespace

std::span<const DTypeInfo> all_dtypes() noexcept {
    return k_types;
}

const DTypeInfo *find_dtype(uint32_t id) noexcept {
    auto row = std::ranges::lower_bound(k_types, DType(id), {}, &DTypeInfo::type);
    return row != k_types.end() && row->type == DType(id) ? &*row : nullptr;
}

const DTypeInfo &dtype_info(DType type) noexcept {
    static constexpr DTypeInfo unknown{DType(UINT32_MAX), "an unknown type", 1, 0};
    const DTypeInfo *row = find_dtype(uint32_t(type));
    return row ? *row : unknown;
}

std::optional<int64_t> canonical_bytes(DType type, std::span<const int64_t> shape) noexcept {
    if (!find_dtype(uint32_t(type))) return std::nullopt;
    const DTypeInfo &info = dtype_info(type);
    int64_t bytes = info.block_bytes;
    for (size_t i = 0; i < shape.size(); ++i) {
        int64_t size = shape[i];
        if (i + 1 == shape.size()) {
            if (size % info.block_elements != 0) return std::nullopt;
            size /= info.block_elements;
        }
        if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
    }
    if (shape.empty() && info.block_elements != 1) return std::nullopt;
    return bytes;
}

}  // namespace tenon
