// Element types that kernels read: one file per type in this folder, with its layout, its plain decoder and the list of
// its faster rows. type_tables.inc, written by CMake from the folder's listing, collects them.
//
// Fast products quantise a row of activations to 8 bits, 32 elements a block (Q8 below). A dot product of a quantised
// row is
//   y = sum over blocks of  scale_w * scale_x * sum(q_w * q_x)  +  min_w * sum_x,
// where a weight is scale_w * q_w + min_w, and sum_x is the sum of the decoded activations of the block.
#pragma once

#include <span>
#include <string>

#include "isa.h"
#include "rows/rows.h"

namespace tenon::cpu {

struct TypeRow {
    const char *name;
    Features needs;
    DecodeFn decode;   // always there
    DotQ8Fn dot_q8;    // products with one quantised row; null: decode and multiply in f32
    UnpackFn unpack;   // and with several: rows unpacked to a panel,
    TileQ8Fn tile_q8;  // and a tile of it against some rows; all three come together
};

struct Type {
    uint32_t id;
    std::span<const TypeRow> rows;  // fastest first, the last one needs nothing
};

// Whether this plugin reads elements of that type as numbers; null if not.
const Type *find_type(uint32_t id) noexcept;

// "q2_k has no decoder here (types: f32, ...)".
std::string no_decoder(uint32_t id);

const TypeRow &choose(const Type &type, Features have) noexcept;

// Scalar conversions, in software and exact; NaN stays NaN.
float f16_to_f32(uint16_t half) noexcept;
uint16_t f32_to_f16(float value) noexcept;  // to nearest, ties to even
inline float bf16_to_f32(uint16_t half) noexcept {
    return __builtin_bit_cast(float, uint32_t(half) << 16);
}
uint16_t f32_to_bf16(float value) noexcept;  // to nearest, ties to even

// Reads a little-endian f16 at any address.
inline float load_f16(const uint8_t *at) noexcept {
    return f16_to_f32(uint16_t(at[0] | at[1] << 8));
}

// Reads a little-endian word at any address.
inline uint32_t load_u32(const uint8_t *at) noexcept {
    return at[0] | uint32_t(at[1]) << 8 | uint32_t(at[2]) << 16 | uint32_t(at[3]) << 24;
}

}  // namespace tenon::cpu
