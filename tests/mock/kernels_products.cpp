// Products: y = x W^T with W of any decodable type, and batched a b^T with strided operands.
#include "kernels.h"

namespace mock {
namespace {

Support check_linear(const NodeView &node) {
    const ValueView &x = node.input(0), &w = node.input(1), &y = node.output();
    if (!is_float(x.type)) return Support::no("no input of type ", x.info->name);
    if (!can_decode(w.type)) return Support::no("no weights of type ", w.info->name);
    if (w.rank != 2 || !w.rows_contiguous()) return Support::no("the weights' rows aren't contiguous");
    if (x.rank == 0 || !same_outer(x, y) || x.last() != w.shape[1] || y.last() != w.shape[0])
        return Support::no("shapes don't fit");
    return check_output(node, is_float);
}

/// x in floats, and one row of W.
uint64_t linear_scratch(const NodeView &node) {
    const ValueView &x = node.input(0);
    return (static_cast<uint64_t>(x.elements()) + static_cast<uint64_t>(x.last())) * sizeof(float);
}

void run_linear(const NodeView &node, const Memory &memory, std::byte *scratch) {
    const ValueView &x = node.input(0), &w = node.input(1), &y = node.output();
    const std::byte *from_x = memory.at(x), *from_w = memory.at(w);
    std::byte *to = memory.at(y);
    const int64_t in = x.last(), out = y.last(), rows = y.rows(), step = y.info->block_bytes;
    auto *floats = reinterpret_cast<float *>(scratch), *row = floats + x.elements();
    for (int64_t r = 0; r < rows; ++r) {
        const std::byte *at = from_x + offset_of(x, r);
        for (int64_t i = 0; i < in; ++i)
            floats[r * in + i] = static_cast<float>(load(at + i * x.inner_stride(0), x.type));
    }
    for (int64_t o = 0; o < out; ++o) {
        decode_row(from_w + o * w.stride[0], w.type, in, row);
        for (int64_t r = 0; r < rows; ++r) {
            double sum = 0;
            for (int64_t i = 0; i < in; ++i) sum += double{floats[r * in + i]} * double{row[i]};
            store(to + (r * out + o) * step, y.type, sum);
        }
    }
}

/// The last two dimensions are the matrix; those before are the batch, whose sizes divide the output's.
bool batch_fits(const ValueView &operand, const ValueView &y) {
    if (operand.rank > y.rank) return false;
    for (uint32_t i = 2; i < y.rank; ++i) {
        if (operand.inner(i) == 0 || y.inner(i) % operand.inner(i) != 0) return false;
    }
    return true;
}

Support check_matmul(const NodeView &node) {
    const ValueView &a = node.input(0), &b = node.input(1), &y = node.output();
    if (!is_float(a.type) || !is_float(b.type))
        return Support::no("no operands of types ", a.info->name, ", ", b.info->name);
    if (a.rank < 2 || b.rank < 2 || y.rank < 2) return Support::no("an operand isn't a matrix");
    if (a.inner(0) != b.inner(0) || a.inner(1) != y.inner(1) || b.inner(1) != y.inner(0))
        return Support::no("shapes don't fit");
    if (!y.is_empty() && (!batch_fits(a, y) || !batch_fits(b, y))) return Support::no("batches don't fit");
    return check_output(node, is_float);
}

uint64_t matmul_scratch(const NodeView &node) {
    return static_cast<uint64_t>(node.input(0).inner(0)) * sizeof(double);
}

/// Where the matrix of the output's batch number `batch` begins: index i reads i / (out / operand).
int64_t batch_offset(const ValueView &operand, const ValueView &y, int64_t batch) {
    int64_t at = 0;
    for (uint32_t i = 2; i < y.rank; ++i) {
        const int64_t index = batch % y.inner(i);
        batch /= y.inner(i);
        at += index / (y.inner(i) / operand.inner(i)) * operand.inner_stride(i);
    }
    return at;
}

void run_matmul(const NodeView &node, const Memory &memory, std::byte *scratch) {
    const ValueView &a = node.input(0), &b = node.input(1), &y = node.output();
    const std::byte *from_a = memory.at(a), *from_b = memory.at(b);
    std::byte *to = memory.at(y);
    const int64_t m = y.inner(1), n = y.inner(0), k = a.inner(0), step = y.info->block_bytes;
    if (y.is_empty()) return;
    auto *row = reinterpret_cast<double *>(scratch);
    for (int64_t batch = 0; batch < y.elements() / (m * n); ++batch) {
        const std::byte *matrix_a = from_a + batch_offset(a, y, batch), *matrix_b = from_b + batch_offset(b, y, batch);
        for (int64_t i = 0; i < m; ++i) {
            for (int64_t e = 0; e < k; ++e)
                row[e] = load(matrix_a + i * a.inner_stride(1) + e * a.inner_stride(0), a.type);
            for (int64_t j = 0; j < n; ++j) {
                const std::byte *column = matrix_b + j * b.inner_stride(1);
                double sum = 0;
                for (int64_t e = 0; e < k; ++e) sum += row[e] * load(column + e * b.inner_stride(0), b.type);
                store(to + ((batch * m + i) * n + j) * step, y.type, sum);
            }
        }
    }
}

constexpr Kernel kKernels[] = {
    {TN_OP_LINEAR, check_linear, linear_scratch, run_linear},
    {TN_OP_MATMUL, check_matmul, matmul_scratch, run_matmul},
};

}  // namespace

std::span<const Kernel> product_kernels() {
    return kKernels;
}

}  // namespace mock
