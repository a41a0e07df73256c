// Values are moved through the host in pieces, so that it never holds a large one whole.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "tenon/tensor.h"

namespace tenon {

/// The most bytes of a piece, unless one row is longer.
inline constexpr uint64_t k_piece_bytes = 16 << 20;

/// Calls `move(offset, piece)`, `piece` a writable span of memory that pieces share, for the canonical bytes of a value,
/// in order: whole rows each, since a packed layout is made from rows. The first failure ends it. Throws where there is
/// no memory.
template <class Move>
Status in_pieces(DType type, const Shape &shape, Move &&move) {
    const DTypeInfo &info = dtype_info(type);
    const uint64_t row = std::max<uint64_t>(1, uint64_t(shape.back() / info.block_elements * info.block_bytes));
    const auto bytes = uint64_t(canonical_bytes(type, shape.sizes()).value_or(0));
    const uint64_t step = std::max<uint64_t>(1, k_piece_bytes / row) * row;
    std::vector<std::byte> piece(std::min(step, bytes));
    for (uint64_t at = 0; at < bytes; at += step)
        TENON_TRY(move(at, std::span(piece).first(std::min(step, bytes - at))));
    return {};
}

}  // namespace tenon
