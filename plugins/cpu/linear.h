// y = x W^T, the product in which a language model spends its time, made of pieces that a team shares out.
//
// Activations come prepared: F32 rows, and quantised rows if the chosen path multiplies in 8 bits. So several products
// can share one preparation (see ops/linear.cpp, fused.cpp). Weights are read where they lie, in the file's own blocks.
#pragma once

#include "kernel.h"
#include "rows/choose.h"
#include "type.h"

namespace tenon::cpu {

// Quantised rows in a group's scratch: all of q, then pairs, then sums. n is a multiple of 32.
class Q8Matrix {
public:
    Q8Matrix() = default;
    Q8Matrix(std::byte *at, int64_t rows, int64_t n) noexcept
        : q_(reinterpret_cast<int8_t *>(at)), blocks_(n / q8_block), rows_(rows) {}
    static uint64_t bytes(int64_t rows, int64_t n) noexcept {
        return uint64_t(rows) * uint64_t(n / q8_block) * (q8_block + 3 * sizeof(float));
    }
    Q8Row row(int64_t i) const noexcept { return {q(i), pairs(i), sums(i)}; }
    int8_t *q(int64_t i) const noexcept { return q_ + i * blocks_ * q8_block; }
    float *pairs(int64_t i) const noexcept { return reinterpret_cast<float *>(q(rows_)) + i * blocks_ * 2; }
    float *sums(int64_t i) const noexcept { return pairs(rows_) + i * blocks_; }

private:
    int8_t *q_ = nullptr;
    int64_t blocks_ = 0, rows_ = 0;
};

// What a product reads: rows x[t] of `in` elements, as F32 (base and layout) and, where quantised, as Q8.
struct Activations {
    const std::byte *base = nullptr;
    const Operand *layout = nullptr;
    Q8Matrix q8;

    const float *row(int64_t t) const noexcept { return reinterpret_cast<const float *>(base + layout->row_offset(t)); }
    void quantize_row(QuantizeQ8Fn quantize, int64_t t, int64_t n) const noexcept {
        quantize(row(t), n, q8.q(t), q8.pairs(t), q8.sums(t));
    }
};

class Linear {
public:
    // x f32 [..., in] with dense rows, W any type of types/ [out, in] with dense rows.
    static void check(Check &check, const Problem &problem);

    Linear(const Operand &x, const Operand &w, bool exact, Features features);

    // Whether pieces read activations.q8. The exact path and types without 8-bit rows don't.
    bool quantised() const noexcept { return row_.dot_q8 != nullptr; }
    int64_t tokens() const noexcept { return tokens_; }
    int64_t in() const noexcept { return in_; }

    // The work falls into pieces 0 ... pieces() - 1, in any order, each with elements of y of its own:
    // y f32 [tokens, out] = x W^T, + bias [out] if there is one.
    int64_t pieces() const noexcept { return row_pieces_ * token_pieces_; }
    void piece(int64_t i, const Activations &x, const std::byte *w, const float *bias, float *y) const noexcept;

private:
    void quantised_tiles(int64_t row0, int64_t row1, int64_t t0, int64_t t1, const Activations &x, const std::byte *w,
                         float *y) const noexcept;
    void f32_tiles(int64_t row0, int64_t row1, int64_t t0, int64_t t1, const Activations &x, const std::byte *w,
                   float *y) const noexcept;
    const uint8_t *weight_row(const std::byte *w, int64_t row) const noexcept {
        return reinterpret_cast<const uint8_t *>(w) + row * row_stride_;
    }

    int64_t tokens_, in_, out_, row_stride_, blocks_, rows_a_piece_, row_pieces_, token_pieces_;
    Block block_;
    TypeRow row_;
    bool plain_f32_;  // weights are F32: read in place, not decoded
    TileF32Fn tile_f32_;
};

}  // namespace tenon::cpu
