// Composites that the mock claims when asked to (composites=1): each formula directly, without its decomposition.
#include <cmath>

#include "kernels.h"

namespace mock {
namespace {

uint64_t no_scratch(const NodeView &) {
    return 0;
}

// ---- rms_norm ----

Support check_rms_norm(const NodeView &node) {
    const ValueView &x = node.input(0), &y = node.output();
    if (!is_float(x.type) || x.rank == 0 || !x.same_shape(y))
        return Support::no("input 0 isn't the output's shape in floats");
    if (node.has_input(1)) {
        const ValueView &w = node.input(1);
        if (!is_float(w.type) || w.rank != 1 || w.shape[0] != x.last()) return Support::no("the weight isn't f [d]");
    }
    return check_output(node, is_float);
}

void run_rms_norm(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &x = node.input(0), &y = node.output();
    const double eps = node.params<tn_params_norm>().eps;
    const std::byte *from = memory.at(x), *weight = node.has_input(1) ? memory.at(node.input(1)) : nullptr;
    std::byte *to = memory.at(y);
    for_each_row<2>(y, {&x, &y}, [&](const auto &at) {
        double sum = 0;
        for (int64_t i = 0; i < x.last(); ++i) {
            const double v = load(from + at[0] + i * x.inner_stride(0), x.type);
            sum += v * v;
        }
        const double factor = 1 / std::sqrt(sum / static_cast<double>(x.last()) + eps);
        for (int64_t i = 0; i < x.last(); ++i) {
            double v = load(from + at[0] + i * x.inner_stride(0), x.type) * factor;
            if (weight != nullptr) v *= load(weight + i * node.input(1).stride[0], node.input(1).type);
            store(to + at[1] + i * y.inner_stride(0), y.type, v);
        }
    });
}

// ---- swiglu ----

Support check_swiglu(const NodeView &node) {
    for (size_t i = 0; i < 2; ++i) {
        if (!is_float(node.input(i).type) || !node.input(i).same_shape(node.output()))
            return Support::no("input ", i, " doesn't fit");
    }
    return check_output(node, is_float);
}

void run_swiglu(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &gate = node.input(0), &up = node.input(1), &y = node.output();
    const std::byte *from_gate = memory.at(gate), *from_up = memory.at(up);
    std::byte *to = memory.at(y);
    for_each_row<3>(y, {&gate, &up, &y}, [&](const auto &at) {
        for (int64_t i = 0; i < y.last(); ++i) {
            const double g = load(from_gate + at[0] + i * gate.inner_stride(0), gate.type);
            const double u = load(from_up + at[1] + i * up.inner_stride(0), up.type);
            store(to + at[2] + i * y.inner_stride(0), y.type, g / (1 + std::exp(-g)) * u);
        }
    });
}

// ---- rope ----

Support check_rope(const NodeView &node) {
    const auto p = node.params<tn_params_rope>();
    const ValueView &x = node.input(0), &pos = node.input(1);
    if (p.ext_factor != 0) return Support::no("no YaRN");
    if (!is_float(x.type) || x.rank != 3 || !x.same_shape(node.output())) return Support::no("x isn't f [t, h, d]");
    if (pos.type != TN_TYPE_ID_I32 || pos.rank != 1 || pos.shape[0] != x.shape[0])
        return Support::no("pos isn't i32 [t]");
    if (p.dims % 2 != 0 || p.dims > x.last() || p.pairing > TN_ROPE_HALVES)
        return Support::no("dims or pairing isn't right");
    if (node.has_input(2)) {
        const ValueView &f = node.input(2);
        if (f.type != TN_TYPE_ID_F32 || f.rank != 1 || f.shape[0] != p.dims / 2)
            return Support::no("factors aren't f32 [dims / 2]");
    }
    return check_output(node, is_float);
}

/// One pair after the other; reads both elements before it writes them, so that x may lie where y lies.
void run_rope(const NodeView &node, const Memory &memory, std::byte *) {
    const auto p = node.params<tn_params_rope>();
    const ValueView &x = node.input(0), &pos = node.input(1), &y = node.output();
    const std::byte *from = memory.at(x), *from_pos = memory.at(pos);
    const std::byte *factors = node.has_input(2) ? memory.at(node.input(2)) : nullptr;
    std::byte *to = memory.at(y);
    const int64_t half = p.dims / 2;
    const bool halves = p.pairing == TN_ROPE_HALVES;
    for (int64_t r = 0; r < y.rows(); ++r) {
        const std::byte *row = from + offset_of(x, r);
        std::byte *out = to + offset_of(y, r);
        const auto position =
            static_cast<double>(load_index(from_pos + r / y.shape[1] * pos.stride[0], TN_TYPE_ID_I32));
        for (int64_t i = 0; i < half; ++i) {
            double angle =
                position * double{p.scale} * std::pow(double{p.base}, -2.0 * static_cast<double>(i) / p.dims);
            if (factors != nullptr) angle /= load(factors + i * node.input(2).stride[0], TN_TYPE_ID_F32);
            const double c = std::cos(angle) * double{p.attn_factor}, s = std::sin(angle) * double{p.attn_factor};
            const int64_t first = halves ? i : 2 * i, second = halves ? i + half : 2 * i + 1;
            const double a = load(row + first * x.inner_stride(0), x.type),
                         b = load(row + second * x.inner_stride(0), x.type);
            store(out + first * y.inner_stride(0), y.type, a * c - b * s);
            store(out + second * y.inner_stride(0), y.type, a * s + b * c);
        }
        for (int64_t i = p.dims; i < x.last(); ++i) {
            store(out + i * y.inner_stride(0), y.type, load(row + i * x.inner_stride(0), x.type));
        }
    }
}

// ---- attention ----

enum : size_t { kQ, kK, kV, kQPos, kSeq, kBlocks, kStart, kLen, kSinks };

Support check_attention(const NodeView &node) {
    const auto p = node.params<tn_params_attention>();
    const ValueView &q = node.input(kQ), &k = node.input(kK), &v = node.input(kV), &y = node.output();
    const ValueView &blocks = node.input(kBlocks);
    if (!is_float(q.type) || !is_float(k.type) || !is_float(v.type)) return Support::no("an operand isn't of floats");
    if (q.rank != 3 || k.rank != 3 || v.rank != 3 || y.rank != 3 || blocks.rank != 2)
        return Support::no("ranks don't fit");
    const int64_t heads = q.shape[1], kv_heads = k.shape[1];
    if (kv_heads == 0 || heads % kv_heads != 0 || v.shape[1] != kv_heads) return Support::no("heads don't fit");
    if (q.last() != k.last() || v.last() != y.last() || v.shape[0] != k.shape[0]) return Support::no("sizes don't fit");
    if (y.shape[0] != q.shape[0] || y.shape[1] != heads || p.block_rows == 0)
        return Support::no("the output doesn't fit");
    for (size_t i = kQPos; i <= kLen; ++i) {
        const int64_t size = i == kQPos || i == kSeq ? q.shape[0] : blocks.shape[0];
        if (node.input(i).type != TN_TYPE_ID_I32 || node.input(i).shape[0] != size)
            return Support::no("input ", i, " doesn't fit");
    }
    if (node.has_input(kSinks) && (node.input(kSinks).type != TN_TYPE_ID_F32 || node.input(kSinks).shape[0] != heads)) {
        return Support::no("sinks aren't f32 [h]");
    }
    return check_output(node, is_float);
}

/// A logit for each position that the cache holds, and the sums of one head.
uint64_t attention_scratch(const NodeView &node) {
    const auto p = node.params<tn_params_attention>();
    const int64_t capacity = node.input(kBlocks).shape[1] * p.block_rows;
    return static_cast<uint64_t>(capacity + node.output().last()) * sizeof(double);
}

class Attention {
public:
    Attention(const NodeView &node, const Memory &memory, std::byte *scratch)
        : node_(node),
          memory_(memory),
          p_(node.params<tn_params_attention>()),
          q_(node.input(kQ)),
          k_(node.input(kK)),
          v_(node.input(kV)),
          y_(node.output()),
          blocks_(node.input(kBlocks)),
          capacity_(blocks_.shape[1] * p_.block_rows),
          logits_(reinterpret_cast<double *>(scratch)),
          sums_(logits_ + capacity_) {}

    void run() {
        for (int64_t t = 0; t < q_.shape[0]; ++t) {
            for (int64_t h = 0; h < q_.shape[1]; ++h) head(t, h);
        }
    }

private:
    int64_t word(size_t input, int64_t i) const {
        const ValueView &v = node_.input(input);
        return load_index(memory_.at(v) + i * v.stride[0], TN_TYPE_ID_I32);
    }
    /// The cache row of a position, or -1 where the table leads outside.
    int64_t row(int64_t sequence, int64_t position) const {
        const int64_t slot = position % capacity_, size = p_.block_rows;
        const std::byte *entry = memory_.at(blocks_) + sequence * blocks_.stride[0] + slot / size * blocks_.stride[1];
        const int64_t at = load_index(entry, TN_TYPE_ID_I32) * size + slot % size;
        return at >= 0 && at < k_.shape[0] ? at : -1;
    }
    double dot(const std::byte *q, const std::byte *k) const {
        double sum = 0;
        for (int64_t i = 0; i < q_.last(); ++i) {
            sum += load(q + i * q_.inner_stride(0), q_.type) * load(k + i * k_.inner_stride(0), k_.type);
        }
        return sum;
    }

    void head(int64_t t, int64_t h) {
        for (int64_t i = 0; i < y_.last(); ++i) sums_[i] = 0;
        const int64_t sequence = word(kSeq, t), kv_head = h / (q_.shape[1] / k_.shape[1]);
        double total = 1;
        if (sequence >= 0 && sequence < blocks_.shape[0] && capacity_ > 0) total = weigh(t, h, sequence, kv_head);
        std::byte *to = memory_.at(y_) + t * y_.stride[0] + h * y_.stride[1];
        for (int64_t i = 0; i < y_.last(); ++i)
            store(to + i * y_.stride[2], y_.type, total == 0 ? 0 : sums_[i] / total);
    }

    /// Sums the values by exp(logit - most); the sum of the weights.
    double weigh(int64_t t, int64_t h, int64_t sequence, int64_t kv_head) {
        const int64_t q_pos = word(kQPos, t), start = word(kStart, sequence), length = word(kLen, sequence);
        int64_t begin = start, end = std::min(start + std::min(length, capacity_), q_pos + 1);
        if (p_.window > 0) begin = std::max(begin, q_pos - int64_t{p_.window} + 1);
        const std::byte *q = memory_.at(q_) + t * q_.stride[0] + h * q_.stride[1];
        const bool sink = node_.has_input(kSinks);
        const double sink_logit =
            sink ? load(memory_.at(node_.input(kSinks)) + h * node_.input(kSinks).stride[0], TN_TYPE_ID_F32)
                 : -HUGE_VAL;
        double most = sink_logit;
        for (int64_t p = begin; p < end; ++p) {
            const int64_t at = row(sequence, p);
            double logit = at < 0
                               ? -HUGE_VAL
                               : double{p_.scale} * dot(q, memory_.at(k_) + at * k_.stride[0] + kv_head * k_.stride[1]);
            if (at >= 0 && p_.softcap > 0) logit = double{p_.softcap} * std::tanh(logit / double{p_.softcap});
            logits_[p - begin] = logit;
            most = std::max(most, logit);
        }
        if (most == -HUGE_VAL) return 0;
        double total = sink ? std::exp(sink_logit - most) : 0;
        for (int64_t p = begin; p < end; ++p) {
            const int64_t at = row(sequence, p);
            if (at < 0) continue;
            const double weight = std::exp(logits_[p - begin] - most);
            const std::byte *v = memory_.at(v_) + at * v_.stride[0] + kv_head * v_.stride[1];
            for (int64_t i = 0; i < v_.last(); ++i) sums_[i] += weight * load(v + i * v_.inner_stride(0), v_.type);
            total += weight;
        }
        return total;
    }

    const NodeView &node_;
    const Memory &memory_;
    const tn_params_attention p_;
    const ValueView &q_, &k_, &v_, &y_, &blocks_;
    const int64_t capacity_;
    double *const logits_, *const sums_;
};

void run_attention(const NodeView &node, const Memory &memory, std::byte *scratch) {
    Attention(node, memory, scratch).run();
}

constexpr Kernel kKernels[] = {
    {TN_OP_RMS_NORM, check_rms_norm, no_scratch, run_rms_norm},
    {TN_OP_SWIGLU, check_swiglu, no_scratch, run_swiglu},
    {TN_OP_ROPE, check_rope, no_scratch, run_rope},
    {TN_OP_ATTENTION, check_attention, attention_scratch, run_attention},
};

}  // namespace

std::span<const Kernel> composite_kernels() {
    return kKernels;
}

}  // namespace mock
