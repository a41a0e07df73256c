// matmul: a [..., m, k], b [..., n, k] -> [..., m, n]: a b^T. Batch dimensions broadcast, also by whole multiples:
// index i of the output's reads i / (out / own) of an operand's. Rows of any stride: those that don't lie in one piece
// are gathered.
#include <algorithm>

#include "kernel.h"
#include "rows/choose.h"

namespace tenon::cpu {
namespace {

constexpr int64_t k_rows = 32;      // of a, in a piece
constexpr int64_t k_stretch = 256;  // of the summed dimension, gathered at a time
constexpr int64_t k_columns = 64;   // of the output, in a piece

// Bytes from an operand's start to the matrix that batch number i of the output reads.
int64_t batch_offset(const Operand &own, const Operand &out, int64_t i) {
    int64_t bytes = 0;
    for (int d = int(out.rank) - 3; d >= 0; --d) {
        const int64_t index = i % out.shape[d];
        i /= out.shape[d];
        const int o = d - int(out.rank - own.rank);
        if (o >= 0 && own.shape[o] > 0) bytes += index / (out.shape[d] / own.shape[o]) * own.stride[o];
    }
    return bytes;
}

bool batches_fit(const Operand &own, const Operand &out) {
    if (own.rank < 2 || own.rank > out.rank) return false;
    for (uint32_t o = 0; o + 2 < own.rank; ++o) {
        const int64_t big = out.shape[o + out.rank - own.rank];
        if (own.shape[o] == 0 ? big != 0 : big % own.shape[o] != 0) return false;
    }
    return true;
}

class MatmulKernel final : public Kernel {
public:
    MatmulKernel(const Problem &p, Features features)
        : a_(p.in[0]),
          b_(p.in[1]),
          y_(p.out[0]),
          m_(y_.shape[y_.rank - 2]),
          n_(y_.last()),
          k_(a_.last()),
          batches_(y_.rows() == 0 ? 0 : y_.rows() / m_),
          tile_(choose_tile_f32(features)) {}

    int64_t pieces(int) const noexcept override { return batches_ * row_pieces() * column_pieces(); }

    void piece(const Args &args, int, int64_t i) const noexcept override {
        const int64_t batch = i / (row_pieces() * column_pieces()), rest = i % (row_pieces() * column_pieces());
        multiply(args, batch, rest / column_pieces() * k_rows, rest % column_pieces() * k_columns);
    }

private:
    int64_t row_pieces() const noexcept { return (m_ + k_rows - 1) / k_rows; }
    int64_t column_pieces() const noexcept { return (n_ + k_columns - 1) / k_columns; }

    // Elements [first, first + n) of a row: where they lie, or gathered into space.
    static const float *stretch(const Operand &x, const std::byte *matrix, int64_t row, int64_t first, int64_t n,
                                float *space) {
        const int64_t step = x.last_stride();
        const std::byte *at = matrix + row * x.stride[x.rank - 2] + first * step;
        if (x.dense_rows()) return reinterpret_cast<const float *>(at);
        for (int64_t i = 0; i < n; ++i) space[i] = *reinterpret_cast<const float *>(at + i * step);
        return space;
    }

    void multiply(const Args &args, int64_t batch, int64_t row0, int64_t column0) const noexcept {
        alignas(64) float gathered_a[k_rows][k_stretch], gathered_b[panel_rows][k_stretch];
        const float *a_rows[k_rows], *b_rows[panel_rows];
        float sums[k_columns / panel_rows][k_rows * panel_rows] = {};
        const std::byte *a = args.in[0] + batch_offset(a_, y_, batch), *b = args.in[1] + batch_offset(b_, y_, batch);
        const int64_t rows = std::min(k_rows, m_ - row0), columns = std::min(k_columns, n_ - column0);
        for (int64_t first = 0; first < k_; first += k_stretch) {
            const int64_t n = std::min(k_stretch, k_ - first);
            for (int64_t r = 0; r < rows; ++r) a_rows[r] = stretch(a_, a, row0 + r, first, n, gathered_a[r]);
            for (int64_t c = 0; c < columns; c += panel_rows) {
                for (int64_t j = 0; j < panel_rows; ++j) {
                    // Past the last column it is repeated; those sums aren't stored.
                    const int64_t column = column0 + std::min(c + j, columns - 1);
                    b_rows[j] = stretch(b_, b, column, first, n, gathered_b[j]);
                }
                tile_(b_rows, a_rows, rows, n, sums[c / panel_rows]);
            }
        }
        float *y = args.output<float>(0) + (batch * m_ + row0) * n_ + column0;
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c) y[r * n_ + c] = sums[c / panel_rows][r * panel_rows + c % panel_rows];
        }
    }

    Operand a_, b_, y_;
    int64_t m_, n_, k_, batches_;
    TileF32Fn tile_;
};

std::string refuse(const Problem &p) {
    Check check(p);
    check.in(0, {TN_TYPE_ID_F32}).in(1, {TN_TYPE_ID_F32}).activation_out(0);
    check.require(
        [&] { return p.out[0].rank >= 2 && batches_fit(p.in[0], p.out[0]) && batches_fit(p.in[1], p.out[0]); },
        "batch dimensions don't divide the output's");
    return check
        .require(
            [&] {
                const Operand &a = p.in[0], &b = p.in[1], &y = p.out[0];
                return a.last() == b.last() && y.last() == b.shape[b.rank - 2] &&
                       y.shape[y.rank - 2] == a.shape[a.rank - 2];
            },
            "not [..., m, k] and [..., n, k] to [..., m, n]")
        .reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features features) {
    return std::make_unique<MatmulKernel>(p, features);
}

constexpr Op k_ops[] = {{TN_OP_MATMUL, refuse, make}};

}  // namespace

std::span<const Op> ops_matmul() {
    return k_ops;
}

}  // namespace tenon::cpu
