#include "linear.h"

#include <algorithm>

namespace tenon::cpu {
namespace {

// Tokens against which a decoded stretch of weights is used, at most: their sums fit on the stack.
constexpr int64_t k_token_block = 64;
// F32 weights decoded at a time: 4 rows of these fill 16 KB, half of a first-level cache.
constexpr int64_t k_decoded = 1024;
// Bytes of weights in a piece. Large enough that claiming one costs nothing, small enough that threads end together.
constexpr int64_t k_piece_bytes = 32 * 1024;

constexpr int64_t ceil_div(int64_t a, int64_t b) noexcept {
    return (a + b - 1) / b;
}

}  // namespace

void Linear::check(Check &check, const Problem &p) {
    check.activation_in(0).require([&] { return p.input(1) != nullptr; }, "the weight is missing");
    check.require([&] { return find_type(p.in[1].type) != nullptr; },
                  [&] { return "the weight's type " + no_decoder(p.in[1].type); });
    check.require([&] { return p.in[0].rank >= 1 && p.in[1].rank == 2 && p.in[1].shape[1] == p.in[0].last(); },
                  "the weight isn't [out, in] with in = the activations' last dimension");
    check.require([&] { return p.in[1].shape[1] % block_of(p.in[1].type).elements == 0; },
                  "the weight's rows aren't whole blocks");
    check.require([&] { return p.in[1].dense_rows(); }, "a weight row's elements don't lie side by side");
    check.require([&] { return p.in[1].type != TN_TYPE_ID_F32 || p.in[1].stride[0] % 4 == 0; },
                  "F32 weight rows aren't aligned to 4 bytes");
    check.activation_out(0);
    check.require([&] { return p.out[0].last() == p.in[1].shape[0] && p.out[0].rows() == p.in[0].rows(); },
                  "the output isn't [..., out] with the activations' leading dimensions");
}

Linear::Linear(const Operand &x, const Operand &w, bool exact, Features features)
    : tokens_(x.rows()),
      in_(x.last()),
      out_(w.shape[0]),
      row_stride_(w.stride[0]),
      block_(block_of(w.type)),
      row_(choose(*find_type(w.type), features)),
      plain_f32_(w.type == TN_TYPE_ID_F32),
      tile_f32_(choose_tile_f32(features)) {
    blocks_ = in_ / block_.elements;
    if (exact) row_.dot_q8 = nullptr;
    rows_a_piece_ = std::max<int64_t>(1, k_piece_bytes / std::max<int64_t>(1, blocks_ * block_.bytes));
    // With many tokens a piece's time is in its products, of which a few rows are enough.
    if (tokens_ > 1) rows_a_piece_ = std::clamp<int64_t>(rows_a_piece_, 1, 64);
    rows_a_piece_ = ceil_div(rows_a_piece_, panel_rows) * panel_rows;
    row_pieces_ = ceil_div(out_, rows_a_piece_);
    token_pieces_ = ceil_div(tokens_, k_token_block);
}

void Linear::piece(int64_t i, const Activations &x, const std::byte *w, const float *bias, float *y) const noexcept {
    // Token blocks of one stretch of weights follow each other, so that it is read from memory once.
    const int64_t row0 = i / token_pieces_ * rows_a_piece_, row1 = std::min(out_, row0 + rows_a_piece_);
    const int64_t t0 = i % token_pieces_ * k_token_block, t1 = std::min(tokens_, t0 + k_token_block);
    if (!quantised()) {
        f32_tiles(row0, row1, t0, t1, x, w, y);
    } else if (tokens_ == 1) {
        row_.dot_q8(weight_row(w, row0), row_stride_, row1 - row0, blocks_, x.q8.row(0), y + row0);
    } else {
        quantised_tiles(row0, row1, t0, t1, x, w, y);
    }
    if (bias == nullptr) return;
    for (int64_t t = t0; t < t1; ++t) {
        for (int64_t r = row0; r < row1; ++r) y[t * out_ + r] += bias[r];
    }
}

void Linear::quantised_tiles(int64_t row0, int64_t row1, int64_t t0, int64_t t1, const Activations &x,
                             const std::byte *w, float *y) const noexcept {
    Q8Panel panel;
    Q8Row rows[k_token_block];
    for (int64_t t = t0; t < t1; ++t) rows[t - t0] = x.q8.row(t);
    for (int64_t r0 = row0; r0 < row1; r0 += panel_rows) {
        float sums[k_token_block * panel_rows] = {};
        const int64_t rows_here = std::min(panel_rows, row1 - r0);
        for (int64_t first = 0; first < blocks_; first += panel_blocks) {
            const int64_t blocks = std::min(panel_blocks, blocks_ - first);
            for (int64_t r = 0; r < panel_rows; ++r) {
                // Past the last row the panel repeats it; those sums aren't stored.
                const uint8_t *at = weight_row(w, r0 + std::min(r, rows_here - 1)) + first * block_.bytes;
                row_.unpack(at, blocks, panel.q[r], panel.scale[r], panel.min[r]);
            }
            row_.tile_q8(panel, rows, t1 - t0, first, blocks, sums);
        }
        for (int64_t t = t0; t < t1; ++t) {
            for (int64_t r = 0; r < rows_here; ++r) y[t * out_ + r0 + r] = sums[(t - t0) * panel_rows + r];
        }
    }
}

void Linear::f32_tiles(int64_t row0, int64_t row1, int64_t t0, int64_t t1, const Activations &x, const std::byte *w,
                       float *y) const noexcept {
    alignas(64) float decoded[panel_rows][k_decoded];
    const float *weights[panel_rows];
    const float *x_rows[k_token_block];
    for (int64_t r0 = row0; r0 < row1; r0 += panel_rows) {
        float sums[k_token_block * panel_rows] = {};
        const int64_t rows_here = std::min(panel_rows, row1 - r0);
        for (int64_t first = 0; first < in_; first += k_decoded) {
            const int64_t n = std::min(k_decoded, in_ - first);
            for (int64_t r = 0; r < panel_rows; ++r) {
                const uint8_t *at =
                    weight_row(w, r0 + std::min(r, rows_here - 1)) + first / block_.elements * block_.bytes;
                weights[r] = decoded[r];
                if (plain_f32_) {
                    weights[r] = reinterpret_cast<const float *>(at);
                } else if (r < rows_here) {
                    row_.decode(at, decoded[r], n);
                } else {
                    weights[r] = weights[r - 1];
                }
            }
            for (int64_t t = t0; t < t1; ++t) x_rows[t - t0] = x.row(t) + first;
            tile_f32_(weights, x_rows, t1 - t0, n, sums);
        }
        for (int64_t t = t0; t < t1; ++t) {
            for (int64_t r = 0; r < rows_here; ++r) y[t * out_ + r0 + r] = sums[(t - t0) * panel_rows + r];
        }
    }
}

}  // namespace tenon::cpu
