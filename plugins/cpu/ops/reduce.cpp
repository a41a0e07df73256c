// sum, mean, max_reduce: over the last dimension, which stays with size 1. argmax, top_k: indices of the largest, ties
// to the lower index; NaN counts as smaller than all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel.h"

namespace tenon::cpu {
namespace {

// One row: n elements, step floats apart.
struct RowView {
    const float *x;
    int64_t step, n;
    float operator[](int64_t i) const { return x[i * step]; }
};

RowView row_of(const Operand &x, const Args &args, int64_t row) {
    return {args.input<float>(0, x.row_offset(row)), x.last_stride() / int64_t(sizeof(float)), x.last()};
}

// In double, which is as fast here (the row comes from memory) and right for any length.
double sum(const RowView &row) {
    double part[4] = {};
    int64_t i = 0;
    for (; i + 4 <= row.n; i += 4) {
        for (int64_t j = 0; j < 4; ++j) part[j] += double(row[i + j]);
    }
    for (; i < row.n; ++i) part[0] += double(row[i]);
    return part[0] + part[1] + (part[2] + part[3]);
}

// NaN if there is one, as IEEE's maximum has it; -inf for an empty row.
float largest(const RowView &row) {
    float most = -std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < row.n; ++i) {
        if (std::isnan(row[i])) return row[i];
        most = std::max(most, row[i]);
    }
    return most;
}

// Whether element a comes before b in falling order.
bool before(const RowView &row, int64_t a, int64_t b) {
    const float x = row[a], y = row[b];
    if (x > y) return true;
    if (x < y) return false;
    if (std::isnan(x) != std::isnan(y)) return std::isnan(y);
    return a < b;
}

std::string refuse_reduce(const Problem &p) {
    Check check(p);
    check.in(0, {TN_TYPE_ID_F32}).activation_out(0);
    return check
        .require([&] { return p.in[0].rank >= 1 && p.out[0].last() == 1 && p.out[0].rows() == p.in[0].rows(); },
                 "the output isn't the input with a last dimension of 1")
        .reason();
}

template <class Reduce>
std::unique_ptr<Kernel> rowwise(const Problem &p, Reduce reduce) {
    return make_kernel(Cut::of(p.in[0].rows(), p.in[0].last()),
                       [x = p.in[0], reduce](const Args &args, int64_t first, int64_t last) {
                           for (int64_t r = first; r < last; ++r) args.output<float>(0)[r] = reduce(row_of(x, args, r));
                       });
}

std::unique_ptr<Kernel> make_sum(const Problem &p, Features) {
    return rowwise(p, [](const RowView &row) { return float(sum(row)); });
}
std::unique_ptr<Kernel> make_mean(const Problem &p, Features) {
    return rowwise(p, [](const RowView &row) { return float(sum(row) / double(row.n)); });
}
std::unique_ptr<Kernel> make_max(const Problem &p, Features) {
    return rowwise(p, largest);
}

int64_t picked(const Problem &p) {
    return p.op == TN_OP_ARGMAX ? 1 : int64_t(p.as<tn_params_top_k>().k);
}

std::string refuse_pick(const Problem &p) {
    Check check(p);
    check.in(0, {TN_TYPE_ID_F32}).out(0, {TN_TYPE_ID_I32});
    check.require([&] { return p.in[0].rank >= 1 && p.out[0].contiguous() && p.out[0].rows() == p.in[0].rows(); },
                  "the output isn't contiguous or differs in its leading dimensions");
    check.require([&] { return p.in[0].last() <= std::numeric_limits<int32_t>::max(); }, "indices don't fit i32");
    return check
        .require([&] { return p.out[0].last() == picked(p) && picked(p) <= p.in[0].last(); },
                 "k isn't the output's last dimension, or more than there is")
        .reason();
}

std::unique_ptr<Kernel> make_pick(const Problem &p, Features) {
    return make_kernel(Cut::of(p.in[0].rows(), p.in[0].last()),
                       [x = p.in[0], k = picked(p)](const Args &args, int64_t first, int64_t last) {
                           for (int64_t r = first; r < last && k > 0; ++r) {
                               const RowView row = row_of(x, args, r);
                               const auto order = [&](int32_t a, int32_t b) { return before(row, a, b); };
                               int32_t *best = args.output<int32_t>(0) + r * k;
                               for (int64_t i = 0; i < k; ++i) best[i] = int32_t(i);
                               // A heap with the worst of the k on top, in the output itself.
                               std::make_heap(best, best + k, order);
                               for (int64_t i = k; i < row.n; ++i) {
                                   if (!before(row, i, best[0])) continue;
                                   std::pop_heap(best, best + k, order);
                                   best[k - 1] = int32_t(i);
                                   std::push_heap(best, best + k, order);
                               }
                               std::sort_heap(best, best + k, order);
                           }
                       });
}

constexpr Op k_ops[] = {{TN_OP_SUM, refuse_reduce, make_sum},
                        {TN_OP_MEAN, refuse_reduce, make_mean},
                        {TN_OP_MAX_REDUCE, refuse_reduce, make_max},
                        {TN_OP_ARGMAX, refuse_pick, make_pick},
                        {TN_OP_TOP_K, refuse_pick, make_pick}};

}  // namespace

std::span<const Op> ops_reduce() {
    return k_ops;
}

}  // namespace tenon::cpu
