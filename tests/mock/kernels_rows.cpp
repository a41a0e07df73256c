// Ops that look at rows: reductions, softmax, selection, gathering, scattering, concatenation.
#include <cmath>

#include "kernels.h"

namespace mock {
namespace {

uint64_t no_scratch(const NodeView &) {
    return 0;
}
bool is_i32(uint32_t type) {
    return type == TN_TYPE_ID_I32;
}
bool is_f32(uint32_t type) {
    return type == TN_TYPE_ID_F32;
}

// ---- sum, mean, max_reduce ----

Support check_reduce(const NodeView &node) {
    const ValueView &x = node.input(0), &y = node.output();
    if (!is_float(x.type)) return Support::no("no input of type ", x.info->name);
    if (x.rank == 0 || !same_outer(x, y) || y.last() != 1)
        return Support::no("the output isn't the input's shape with a last 1");
    return check_output(node, is_float);
}

void run_reduce(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &x = node.input(0), &y = node.output();
    const std::byte *from = memory.at(x);
    std::byte *to = memory.at(y);
    for_each_row<2>(y, {&x, &y}, [&](const auto &at) {
        double sum = 0, most = -HUGE_VAL;
        for (int64_t i = 0; i < x.last(); ++i) {
            const double v = load(from + at[0] + i * x.inner_stride(0), x.type);
            sum += v;
            if (std::isnan(v) || v > most) most = v;
        }
        const double mean = x.last() == 0 ? 0 : sum / static_cast<double>(x.last());
        store(to + at[1], y.type, node.op == TN_OP_SUM ? sum : node.op == TN_OP_MEAN ? mean : most);
    });
}

// ---- argmax, top_k ----

Support check_select(const NodeView &node) {
    const ValueView &x = node.input(0), &y = node.output();
    const int64_t k = node.op == TN_OP_TOP_K ? int64_t{node.params<tn_params_top_k>().k} : 1;
    if (!is_float(x.type)) return Support::no("no input of type ", x.info->name);
    if (x.rank == 0 || !same_outer(x, y) || y.last() != k || k > x.last())
        return Support::no("the output's last size isn't k");
    return check_output(node, is_i32);
}

/// The k largest in falling order, of equals the lowest index first: each pick is the best of those that come after the
/// pick before it in that order.
void run_select(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &x = node.input(0), &y = node.output();
    const std::byte *from = memory.at(x);
    std::byte *to = memory.at(y);
    for_each_row<2>(y, {&x, &y}, [&](const auto &at) {
        double last = HUGE_VAL;
        int64_t last_at = -1;
        for (int64_t k = 0; k < y.last(); ++k) {
            double best = -HUGE_VAL;
            int64_t best_at = -1;
            for (int64_t i = 0; i < x.last(); ++i) {
                double v = load(from + at[0] + i * x.inner_stride(0), x.type);
                if (std::isnan(v)) v = -HUGE_VAL;
                const bool after = v < last || (v == last && i > last_at);
                if (after && (best_at < 0 || v > best)) best = v, best_at = i;
            }
            store(to + at[1] + k * y.inner_stride(0), y.type, static_cast<double>(best_at));
            last = best, last_at = best_at;
        }
    });
}

// ---- softmax ----

Support check_softmax(const NodeView &node) {
    const ValueView &x = node.input(0);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.has_input(i)) continue;
        if (!is_float(node.input(i).type)) return Support::no("no input of type ", node.input(i).info->name);
        if (!node.input(i).same_shape(node.output()))
            return Support::no("input ", i, " isn't broadcast to the output's shape");
    }
    if (x.rank == 0) return Support::no("a scalar has no last dimension");
    return check_output(node, is_float);
}

uint64_t row_scratch(const NodeView &node) {
    return static_cast<uint64_t>(node.output().last()) * sizeof(double);
}

void run_softmax(const NodeView &node, const Memory &memory, std::byte *scratch) {
    const ValueView &x = node.input(0), &y = node.output(), &mask = node.has_input(1) ? node.input(1) : x;
    const double scale = node.params<tn_params_softmax>().scale;
    const std::byte *from = memory.at(x), *from_mask = node.has_input(1) ? memory.at(mask) : nullptr;
    std::byte *to = memory.at(y);
    auto *row = reinterpret_cast<double *>(scratch);
    for_each_row<3>(y, {&x, &mask, &y}, [&](const auto &at) {
        double most = -HUGE_VAL, sum = 0;
        for (int64_t i = 0; i < y.last(); ++i) {
            row[i] = scale * load(from + at[0] + i * x.inner_stride(0), x.type);
            if (from_mask != nullptr) row[i] += load(from_mask + at[1] + i * mask.inner_stride(0), mask.type);
            most = std::isnan(row[i]) || row[i] > most ? row[i] : most;
        }
        for (int64_t i = 0; i < y.last(); ++i) {
            row[i] = most == -HUGE_VAL ? 0 : std::exp(row[i] - most);
            sum += row[i];
        }
        for (int64_t i = 0; i < y.last(); ++i) {
            store(to + at[2] + i * y.inner_stride(0), y.type, sum == 0 ? 0 : row[i] / sum);
        }
    });
}

// ---- gather_last, gather_rows, scatter_rows ----

Support check_gather_last(const NodeView &node) {
    const ValueView &x = node.input(0), &ids = node.input(1), &y = node.output();
    if (!is_number(x.type) || y.type != x.type) return Support::no("no elements of type ", x.info->name);
    if (ids.type != TN_TYPE_ID_I32) return Support::no("no ids of type ", ids.info->name);
    if (x.rank == 0 || !same_outer(x, y) || !ids.same_shape(y)) return Support::no("shapes don't fit");
    return check_output(node, is_number);
}

void run_gather_last(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &x = node.input(0), &ids = node.input(1), &y = node.output();
    const std::byte *from = memory.at(x), *from_ids = memory.at(ids);
    std::byte *to = memory.at(y);
    for_each_row<3>(y, {&x, &ids, &y}, [&](const auto &at) {
        for (int64_t i = 0; i < y.last(); ++i) {
            const int64_t id = load_index(from_ids + at[1] + i * ids.inner_stride(0), ids.type);
            std::byte *element = to + at[2] + i * y.inner_stride(0);
            std::memset(element, 0, y.info->block_bytes);
            if (id < 0 || id >= x.last()) continue;
            std::memcpy(element, from + at[0] + id * x.inner_stride(0), y.info->block_bytes);
        }
    });
}

Support check_gather_rows(const NodeView &node) {
    const ValueView &table = node.input(0), &ids = node.input(1), &y = node.output();
    if (!can_decode(table.type) || table.rank != 2) return Support::no("no table of type ", table.info->name);
    if (!table.rows_contiguous()) return Support::no("the table's rows aren't contiguous");
    if (!is_index(ids.type)) return Support::no("no ids of type ", ids.info->name);
    if (y.rank != ids.rank + 1 || y.last() != table.last()) return Support::no("shapes don't fit");
    for (uint32_t i = 0; i < ids.rank; ++i) {
        if (ids.shape[i] != y.shape[i]) return Support::no("shapes don't fit");
    }
    return check_output(node, y.type == table.type ? is_number : is_float);
}

uint64_t float_row_scratch(const NodeView &node) {
    return static_cast<uint64_t>(node.input(0).last()) * sizeof(float);
}

void run_gather_rows(const NodeView &node, const Memory &memory, std::byte *scratch) {
    const ValueView &table = node.input(0), &ids = node.input(1), &y = node.output();
    const std::byte *from = memory.at(table), *from_ids = memory.at(ids);
    std::byte *to = memory.at(y);
    auto *row = reinterpret_cast<float *>(scratch);
    const int64_t n = y.last(), step = y.info->block_bytes;
    for (int64_t r = 0; r < y.rows(); ++r) {
        const int64_t id = load_index(from_ids + offset_of(ids, r, 0), ids.type);
        std::byte *at = to + r * n * step;
        if (id < 0 || id >= table.shape[0]) {
            std::memset(at, 0, static_cast<size_t>(n * step));
        } else if (table.type == y.type) {
            std::memcpy(at, from + id * table.stride[0], static_cast<size_t>(n * step));
        } else {
            decode_row(from + id * table.stride[0], table.type, n, row);
            for (int64_t i = 0; i < n; ++i) store(at + i * step, y.type, double{row[i]});
        }
    }
}

Support check_scatter_rows(const NodeView &node) {
    const ValueView &dst = node.output(), &rows = node.input(1), &ids = node.input(2);
    if (!is_float(rows.type) || !is_float(dst.type)) return Support::no("no rows of type ", dst.info->name);
    if (!is_index(ids.type)) return Support::no("no ids of type ", ids.info->name);
    // kv_append is the same with rows of two dimensions
    if (dst.rank < 2 || rows.rank != dst.rank || ids.rank != 1 || ids.shape[0] != rows.shape[0])
        return Support::no("shapes don't fit");
    for (uint32_t i = 1; i < dst.rank; ++i) {
        if (rows.shape[i] != dst.shape[i]) return Support::no("shapes don't fit");
    }
    if (!node.input(0).same_shape(dst) || node.input(0).type != dst.type)
        return Support::no("the output isn't the first input");
    return check_output(node, is_float);
}

void run_scatter_rows(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &rows = node.input(1), &ids = node.input(2), &dst = node.output();
    const std::byte *from = memory.at(rows), *from_ids = memory.at(ids);
    std::byte *to = memory.at(dst);
    const int64_t inner_rows = rows.shape[0] == 0 ? 0 : rows.rows() / rows.shape[0];
    for (int64_t k = 0; k < rows.shape[0]; ++k) {
        const int64_t id = load_index(from_ids + k * ids.stride[0], ids.type);
        if (id < 0 || id >= dst.shape[0]) continue;
        for (int64_t r = 0; r < inner_rows; ++r) {
            const std::byte *row = from + offset_of(rows, k * inner_rows + r);
            std::byte *at = to + offset_of(dst, id * inner_rows + r);
            for (int64_t i = 0; i < dst.last(); ++i) {
                store(at + i * dst.inner_stride(0), dst.type, load(row + i * rows.inner_stride(0), rows.type));
            }
        }
    }
}

// ---- concat ----

Support check_concat(const NodeView &node) {
    const ValueView &y = node.output();
    const uint32_t axis = node.params<tn_params_concat>().axis;
    if (axis >= y.rank) return Support::no("axis ", axis, " is beyond the rank");
    if (y.info->is_block() && axis + 1 == y.rank) return Support::no("no concatenation within rows of blocks");
    int64_t sum = 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.has_input(i)) return Support::no("input ", i, " is missing");
        const ValueView &x = node.input(i);
        if (x.type != y.type || x.rank != y.rank) return Support::no("input ", i, " is of another type or rank");
        for (uint32_t d = 0; d < y.rank; ++d) {
            if (d != axis && x.shape[d] != y.shape[d]) return Support::no("input ", i, " has another shape");
        }
        sum += x.shape[axis];
    }
    if (sum != y.shape[axis]) return Support::no("sizes along the axis don't add up");
    if (!y.is_contiguous()) return Support::no("the output isn't contiguous");
    return Support::yes();
}

void run_concat(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &y = node.output();
    const uint32_t axis = node.params<tn_params_concat>().axis;
    std::byte *to = memory.at(y);
    int64_t begin = 0;  // along the axis
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueView &x = node.input(i);
        ValueView part = y;  // where x goes: its shape, the output's strides
        part.shape = x.shape;
        const std::byte *from = memory.at(x);
        std::byte *at = to + begin * y.stride[axis];
        const uint64_t unit = y.info->block_bytes;
        const int64_t steps = x.last() / y.info->block_elements;
        for_each_row<2>(x, {&x, &part}, [&](const auto &off) {
            for (int64_t k = 0; k < steps; ++k) {
                std::memcpy(at + off[1] + k * part.inner_stride(0), from + off[0] + k * x.inner_stride(0), unit);
            }
        });
        begin += x.shape[axis];
    }
}

// ---- attention_mask ----

Support check_attention_mask(const NodeView &node) {
    for (size_t i = 0; i < 4; ++i) {
        if (node.input(i).type != TN_TYPE_ID_I32 || node.input(i).rank != 1)
            return Support::no("input ", i, " isn't i32 [n]");
    }
    const auto p = node.params<tn_params_attention_mask>();
    const ValueView &y = node.output();
    const int64_t tokens = node.input(0).shape[0], sequences = node.input(2).shape[0];
    if (node.input(1).shape[0] != tokens || node.input(3).shape[0] != sequences || p.capacity == 0) {
        return Support::no("shapes don't fit");
    }
    if (y.rank != 2 || y.shape[0] != tokens || y.shape[1] != sequences * p.capacity)
        return Support::no("the output's shape is wrong");
    return check_output(node, is_f32);
}

void run_attention_mask(const NodeView &node, const Memory &memory, std::byte *) {
    const auto p = node.params<tn_params_attention_mask>();
    const ValueView &y = node.output();
    auto word = [&](size_t input, int64_t i) {
        return load_index(memory.at(node.input(input)) + i * node.input(input).stride[0], TN_TYPE_ID_I32);
    };
    std::byte *to = memory.at(y);
    const int64_t capacity = p.capacity, window = p.window;
    for (int64_t t = 0; t < y.shape[0]; ++t) {
        const int64_t q = word(0, t), sequence = word(1, t);
        for (int64_t column = 0; column < y.shape[1]; ++column) {
            const int64_t s = column / capacity, slot = column % capacity, start = word(2, s);
            const int64_t position = start + ((slot - start) % capacity + capacity) % capacity;
            const bool looks = sequence == s && position < start + word(3, s) && position <= q &&
                               (window == 0 || position > q - window);
            store(to + (t * y.shape[1] + column) * 4, TN_TYPE_ID_F32, looks ? 0 : -HUGE_VAL);
        }
    }
}

constexpr Kernel kKernels[] = {
    {TN_OP_SUM, check_reduce, no_scratch, run_reduce},
    {TN_OP_MEAN, check_reduce, no_scratch, run_reduce},
    {TN_OP_MAX_REDUCE, check_reduce, no_scratch, run_reduce},
    {TN_OP_ARGMAX, check_select, no_scratch, run_select},
    {TN_OP_TOP_K, check_select, no_scratch, run_select},
    {TN_OP_SOFTMAX, check_softmax, row_scratch, run_softmax},
    {TN_OP_GATHER_LAST, check_gather_last, no_scratch, run_gather_last},
    {TN_OP_GATHER_ROWS, check_gather_rows, float_row_scratch, run_gather_rows},
    {TN_OP_SCATTER_ROWS, check_scatter_rows, no_scratch, run_scatter_rows},
    {TN_OP_KV_APPEND, check_scatter_rows, no_scratch, run_scatter_rows},
    {TN_OP_CONCAT, check_concat, no_scratch, run_concat},
    {TN_OP_ATTENTION_MASK, check_attention_mask, no_scratch, run_attention_mask},
};

}  // namespace

std::span<const Kernel> row_kernels() {
    return kKernels;
}

}  // namespace mock
