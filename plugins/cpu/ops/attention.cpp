// attention over a KV cache, without the matrix of scores: the running softmax of Milakov and Gimelshein (2018,
// arXiv:1805.02867), a stretch of positions at a time, all in f32.
//
// An item of work is a block of tokens, a KV head with (some of) the query heads that read it, and a part of the
// positions. So each cache row is decoded once per item, and the work follows kv_len. How work is cut depends on shapes
// and lengths only; with several parts, partial results (m, l, acc) go to scratch and are merged in order.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernel.h"
#include "rows/choose.h"
#include "type.h"
#include "visible.h"

namespace tenon::cpu {
namespace {

constexpr float k_minus_inf = -std::numeric_limits<float>::infinity();
constexpr int64_t k_max_head = 1024;    // elements of a head
constexpr int64_t k_space = 16384;      // floats of decoded keys, decoded values, accumulators
constexpr int64_t k_max_queries = 32;   // query rows of an item
constexpr int64_t k_max_stretch = 64;   // positions at a time
constexpr int64_t k_enough_items = 16;  // below this, positions are cut in parts too
constexpr int64_t k_least_part = 64;    // positions

constexpr int64_t ceil_div(int64_t a, int64_t b) noexcept {
    return (a + b - 1) / b;
}

// The largest score so far, the sum of exponentials relative to it.
struct Running {
    float m = k_minus_inf, l = 0;
};

// exp(from - to), where equal infinities mean no change.
float rescale(float from, float to) noexcept {
    return from == to ? 1.0f : std::exp(from - to);
}

class AttentionKernel final : public Kernel {
public:
    AttentionKernel(const Problem &p, Features features)
        : q_(p.in[0]),
          k_(p.in[1]),
          v_(p.in[2]),
          q_pos_(p.in[3]),
          seq_(p.in[4]),
          blocks_(p.in[5]),
          kv_start_(p.in[6]),
          kv_len_(p.in[7]),
          has_sinks_(p.input(8) != nullptr),
          params_(p.as<tn_params_attention>()),
          tokens_(q_.shape[0]),
          heads_(q_.shape[1]),
          d_(q_.shape[2]),
          dv_(v_.shape[2]),
          kv_heads_(k_.shape[1]),
          capacity_(blocks_.shape[1] * params_.block_rows),
          decode_k_(choose(*find_type(k_.type), features).decode),
          decode_v_(choose(*find_type(v_.type), features).decode),
          tile_(choose_tile_f32(features)),
          max_(choose_max(features)),
          exp_sum_(choose_exp_sum(features)),
          weighted_sum_(choose_weighted_sum(features)),
          tanh_(choose_tanh(features)) {
        const int64_t group = kv_heads_ > 0 ? heads_ / kv_heads_ : 0;
        const int64_t queries = std::min(k_max_queries, k_space / std::max<int64_t>(1, dv_));
        stretch_ = std::min(k_max_stretch, k_space / std::max<int64_t>({1, d_, dv_}));
        heads_an_item_ = std::clamp<int64_t>(group, 1, queries);
        head_parts_ = ceil_div(group, heads_an_item_);
        tokens_an_item_ = std::max<int64_t>(1, queries / heads_an_item_);
        items_ = ceil_div(tokens_, tokens_an_item_) * kv_heads_ * head_parts_;
        if (items_ > 0 && items_ < k_enough_items) {
            parts_ = std::clamp<int64_t>(ceil_div(capacity_, k_least_part), 1, ceil_div(k_enough_items, items_));
        }
    }

    uint64_t scratch_bytes() const noexcept override {
        return parts_ == 1 ? 0 : uint64_t(tokens_ * heads_ * parts_ * (dv_ + 2)) * sizeof(float);
    }

    int phases() const noexcept override { return parts_ == 1 ? 1 : 2; }
    int64_t pieces(int phase) const noexcept override { return phase == 0 ? items_ * parts_ : merges().pieces(); }

    void piece(const Args &args, int phase, int64_t i) const noexcept override {
        if (phase == 0) return item(args, i / parts_, i % parts_);
        for (int64_t row = merges().first(i); row < merges().last(i); ++row) merge(args, row);
    }

private:
    Cut merges() const noexcept { return Cut::of(tokens_ * heads_, parts_ * dv_); }

    // A run of tokens of one sequence, and query heads of one KV head.
    struct Run {
        int64_t token, tokens, head, heads, kv_head, sequence;
        Positions range[k_max_queries];  // of each token
        Positions all;
        int64_t rows() const noexcept { return tokens * heads; }
    };

    int64_t number(const Args &args, size_t input, const Operand &layout, int64_t i) const noexcept {
        return *args.input<int32_t>(input, i * layout.stride[0]);
    }

    Positions range_of(const Args &args, int64_t token, int64_t s) const noexcept {
        return visible(number(args, 3, q_pos_, token), number(args, 6, kv_start_, s), number(args, 7, kv_len_, s),
                       params_.window, capacity_);
    }

    void item(const Args &args, int64_t i, int64_t part) const noexcept {
        Run run;
        run.kv_head = i / head_parts_ % kv_heads_;
        const int64_t group = heads_ / kv_heads_, first_head = i % head_parts_ * heads_an_item_;
        run.head = run.kv_head * group + first_head;
        run.heads = std::min(heads_an_item_, group - first_head);
        const int64_t t0 = i / head_parts_ / kv_heads_ * tokens_an_item_, t1 = std::min(tokens_, t0 + tokens_an_item_);
        for (run.token = t0; run.token < t1; run.token += run.tokens) {
            run.sequence = number(args, 4, seq_, run.token);
            const bool exists = run.sequence >= 0 && run.sequence < blocks_.shape[0];
            run.all = {};
            run.tokens = 0;
            for (int64_t t = run.token; t < t1 && number(args, 4, seq_, t) == run.sequence; ++t) {
                const Positions p = exists ? range_of(args, t, run.sequence) : Positions{};
                run.range[run.tokens++] = p;
                if (p.empty()) continue;
                run.all =
                    run.all.empty() ? p : Positions{std::min(run.all.first, p.first), std::max(run.all.end, p.end)};
            }
            attend(args, run, part);
        }
    }

    // The positions of run.all that belong to a part.
    Positions part_of(const Positions &all, int64_t part) const noexcept {
        const int64_t n = std::max<int64_t>(0, all.end - all.first);
        const int64_t length = std::max(k_least_part, ceil_div(ceil_div(n, parts_), 16) * 16);
        if (parts_ == 1) return all;
        return {all.first + std::min(n, part * length), all.first + std::min(n, (part + 1) * length)};
    }

    void attend(const Args &args, const Run &run, int64_t part) const noexcept {
        alignas(64) float decoded[k_space], acc[k_space], scores[k_max_queries * k_max_stretch];
        Running running[k_max_queries];
        std::memset(acc, 0, size_t(run.rows() * dv_) * sizeof(float));
        const Positions mine = part_of(run.all, part);
        for (int64_t p = mine.first; p < mine.end; p += stretch_) {
            const int64_t n = std::min(stretch_, mine.end - p);
            score(args, run, p, n, decoded, scores);
            float keep[k_max_queries];
            for (int64_t r = 0; r < run.rows(); ++r) {
                float *row = scores + r * k_max_stretch;
                const float m = std::max(running[r].m, max_(row, n));
                keep[r] = rescale(running[r].m, m);
                running[r].l = running[r].l * keep[r] + exp_sum_(row, n, m);
                running[r].m = m;
            }
            load(args, 2, v_, decode_v_, run, p, n, decoded);
            weighted_sum_(scores, k_max_stretch, decoded, n, dv_, run.rows(), keep, acc);
        }
        for (int64_t r = 0; r < run.rows(); ++r) {
            const int64_t token = run.token + r / run.heads, head = run.head + r % run.heads;
            if (parts_ == 1) {
                finish(args, token, head, running[r], acc + r * dv_);
                continue;
            }
            float *to = partial(args, token * heads_ + head, part);
            to[0] = running[r].m;
            to[1] = running[r].l;
            std::memcpy(to + 2, acc + r * dv_, size_t(dv_) * sizeof(float));
        }
    }

    // Rows of a cache for n positions from p on, decoded to f32; a block outside the cache gives zeros.
    void load(const Args &args, size_t input, const Operand &cache, DecodeFn decode, const Run &run, int64_t p,
              int64_t n, float *to) const noexcept {
        const int64_t size = cache.shape[2], block_rows = params_.block_rows;
        for (int64_t i = 0; i < n; ++i, to += size) {
            const int64_t slot = slot_of(p + i, capacity_);
            const int64_t at = run.sequence * blocks_.stride[0] + slot / block_rows * blocks_.stride[1];
            const int64_t row = int64_t(*args.input<int32_t>(5, at)) * block_rows + slot % block_rows;
            if (row >= 0 && row < cache.shape[0]) {
                decode(args.in[input] + row * cache.stride[0] + run.kv_head * cache.stride[1], to, size);
            } else {
                std::memset(to, 0, size_t(size) * sizeof(float));
            }
        }
    }

    // scores[r][i] = softcap(scale q_r k_i) for n positions from p on, -inf where token r doesn't look.
    void score(const Args &args, const Run &run, int64_t p, int64_t n, float *keys, float *scores) const noexcept {
        const float *queries[k_max_queries], *rows[panel_rows];
        for (int64_t r = 0; r < run.rows(); ++r) {
            const int64_t token = run.token + r / run.heads, head = run.head + r % run.heads;
            queries[r] = args.input<float>(0, token * q_.stride[0] + head * q_.stride[1]);
        }
        load(args, 1, k_, decode_k_, run, p, n, keys);
        for (int64_t i = 0; i < n; i += panel_rows) {
            float sums[k_max_queries * panel_rows] = {};
            for (int64_t j = 0; j < panel_rows; ++j) rows[j] = keys + std::min(i + j, n - 1) * d_;
            tile_(rows, queries, run.rows(), d_, sums);
            for (int64_t r = 0; r < run.rows(); ++r) {
                for (int64_t j = 0; j < std::min(panel_rows, n - i); ++j) {
                    scores[r * k_max_stretch + i + j] = params_.scale * sums[r * panel_rows + j];
                }
            }
        }
        for (int64_t r = 0; r < run.rows(); ++r) {
            float *row = scores + r * k_max_stretch;
            if (params_.softcap > 0) {
                for (int64_t i = 0; i < n; ++i) row[i] /= params_.softcap;
                tanh_(row, row, n);
                for (int64_t i = 0; i < n; ++i) row[i] *= params_.softcap;
            }
            const Positions &seen = run.range[r / run.heads];
            for (int64_t i = 0; i < std::min(n, seen.first - p); ++i) row[i] = k_minus_inf;
            for (int64_t i = std::max<int64_t>(0, seen.end - p); i < n; ++i) row[i] = k_minus_inf;
        }
    }

    float *partial(const Args &args, int64_t row, int64_t part) const noexcept {
        return reinterpret_cast<float *>(args.scratch) + (row * parts_ + part) * (dv_ + 2);
    }

    void merge(const Args &args, int64_t row) const noexcept {
        float acc[k_max_head] = {};
        Running total;
        for (int64_t part = 0; part < parts_; ++part) {
            const float *from = partial(args, row, part);
            if (from[0] == k_minus_inf && from[1] == 0) continue;
            const float m = std::max(total.m, from[0]), keep = rescale(total.m, m), factor = rescale(from[0], m);
            total = {m, total.l * keep + from[1] * factor};
            for (int64_t j = 0; j < dv_; ++j) acc[j] = acc[j] * keep + from[2 + j] * factor;
        }
        finish(args, row / heads_, row % heads_, total, acc);
    }

    // y = acc / l, with the head's sink in the sum; zeros where nothing was seen.
    void finish(const Args &args, int64_t token, int64_t head, Running total, const float *acc) const noexcept {
        float *y = args.output<float>(0) + (token * heads_ + head) * dv_;
        const bool nothing = total.m == k_minus_inf && total.l == 0;
        float factor = 1;
        if (has_sinks_ && !nothing) {
            const float sink = args.input<float>(8)[head], m = std::max(total.m, sink);
            factor = rescale(total.m, m);
            total.l = total.l * factor + rescale(sink, m);
        }
        for (int64_t j = 0; j < dv_; ++j) y[j] = nothing ? 0.0f : acc[j] * factor / total.l;
    }

    Operand q_, k_, v_, q_pos_, seq_, blocks_, kv_start_, kv_len_;
    bool has_sinks_;
    tn_params_attention params_;
    int64_t tokens_, heads_, d_, dv_, kv_heads_, capacity_;
    int64_t stretch_ = 0, heads_an_item_ = 0, head_parts_ = 0, tokens_an_item_ = 0, items_ = 0, parts_ = 1;
    DecodeFn decode_k_, decode_v_;
    TileF32Fn tile_;
    MaxFn max_;
    ExpSumFn exp_sum_;
    WeightedSumFn weighted_sum_;
    UnaryFn tanh_;
};

std::string refuse(const Problem &p) {
    const auto &params = p.as<tn_params_attention>();
    const std::initializer_list<uint32_t> caches = {TN_TYPE_ID_F32, TN_TYPE_ID_F16, TN_TYPE_ID_BF16, TN_TYPE_ID_Q8_0};
    Check check(p);
    check.activation_in(0).in(1, caches).in(2, caches);
    for (size_t i = 3; i < 8; ++i) check.in(i, {TN_TYPE_ID_I32});
    check.activation_out(0);
    check.require([&] { return p.in[0].rank == 3 && p.in[1].rank == 3 && p.in[2].rank == 3 && p.out[0].rank == 3; },
                  "q, the caches and the output aren't of rank 3");
    check.require([&] { return p.in[1].dense_rows() && p.in[2].dense_rows(); },
                  "a cache's heads don't lie in one piece");
    check.require([&] { return p.in[0].shape[2] <= k_max_head && p.in[2].shape[2] <= k_max_head; },
                  "heads of more than 1024 elements");
    check.require(
        [&] {
            const Operand &q = p.in[0], &k = p.in[1], &v = p.in[2], &y = p.out[0];
            return k.shape[2] == q.shape[2] && k.shape[0] == v.shape[0] && k.shape[1] == v.shape[1] && k.shape[1] > 0 &&
                   q.shape[1] % k.shape[1] == 0 && y.shape[0] == q.shape[0] && y.shape[1] == q.shape[1] &&
                   y.shape[2] == v.shape[2];
        },
        "q [t, h, d], K [n, h_kv, d], V [n, h_kv, d_v] and the output [t, h, d_v] don't fit");
    check.require(
        [&] {
            return p.in[5].rank == 2 && p.in[3].rank == 1 && p.in[4].rank == 1 && p.in[6].rank == 1 &&
                   p.in[7].rank == 1 && p.in[3].shape[0] == p.in[0].shape[0] && p.in[4].shape[0] == p.in[0].shape[0] &&
                   p.in[6].shape[0] == p.in[5].shape[0] && p.in[7].shape[0] == p.in[5].shape[0];
        },
        "q_pos and seq [t], blocks [s, b], kv_start and kv_len [s] don't fit");
    check.require([&] { return params.block_rows > 0 && p.in[5].shape[1] > 0; }, "the cache has no blocks");
    return check.optional_vector(8, p.in.empty() ? 0 : p.in[0].shape[1]).reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features features) {
    return std::make_unique<AttentionKernel>(p, features);
}

constexpr Op k_ops[] = {{TN_OP_ATTENTION, refuse, make}};

}  // namespace

std::span<const Op> ops_attention() {
    return k_ops;
}

}  // namespace tenon::cpu
