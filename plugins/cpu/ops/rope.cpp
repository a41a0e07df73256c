// rope: rotary position embedding (Su et al. 2021, arXiv:2104.09864), with frequency factors, linear interpolation and
// YaRN (Peng et al. 2023, arXiv:2309.00071). Formula: tn_params_rope in ops.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernel.h"
#include "rows/rows.h"

namespace tenon::cpu {
namespace {

constexpr int64_t k_max_pairs = 1024;  // a token's table lies on the stack

void table_reference(const double *turns, int64_t count, double position, float magnitude, float *table) {
    for (int64_t i = 0; i < count; ++i) {
        const double all = turns[i] * position, angle = 2 * std::numbers::pi * (all - std::nearbyint(all));
        table[i] = float(std::cos(angle)) * magnitude;
        table[count + i] = float(std::sin(angle)) * magnitude;
    }
}

constexpr Row<RopeTableFn> k_table[] = {{"avx2", isa_avx2, rope_table_avx2}, {"reference", 0, table_reference}};

// How much of pair i's original angle YaRN keeps: all of it for pairs that turn more than beta_fast times over the
// original context, none for those that turn less than beta_slow times.
double yarn_share(const tn_params_rope &p, int64_t i) {
    const auto pair_that_turns = [&](double times) {
        return double(p.dims) * std::log(double(p.original_context) / (times * 2 * std::numbers::pi)) /
               (2 * std::log(double(p.base)));
    };
    const double low = std::max(0.0, std::floor(pair_that_turns(double(p.beta_fast))));
    const double high = std::min(double(p.dims) - 1, std::ceil(pair_that_turns(double(p.beta_slow))));
    const double ramp = std::clamp((double(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
    return (1 - ramp) * double(p.ext_factor);
}

// Turns (of 2 pi) per position of each pair, before the factors.
std::vector<double> turns_of(const tn_params_rope &p) {
    std::vector<double> turns(p.dims / 2);
    for (size_t i = 0; i < turns.size(); ++i) {
        double stretch = double(p.scale);
        if (p.ext_factor > 0) {
            const double kept = yarn_share(p, int64_t(i));
            stretch = stretch * (1 - kept) + kept;
        }
        turns[i] = std::pow(double(p.base), -2.0 * double(i) / double(p.dims)) * stretch / (2 * std::numbers::pi);
    }
    return turns;
}

float magnitude_of(const tn_params_rope &p) {
    return p.ext_factor > 0 ? float(double(p.attn_factor) * (1 + 0.1 * std::log(1 / double(p.scale)))) : p.attn_factor;
}

// Turns the pairs of one head; y may be x.
void rotate(const float *x, float *y, int64_t d, const float *table, int64_t pairs, bool halves) {
    const float *cosine = table, *sine = table + pairs;
    if (halves) {
        for (int64_t i = 0; i < pairs; ++i) {
            const float a = x[i], b = x[pairs + i];
            y[i] = a * cosine[i] - b * sine[i];
            y[pairs + i] = a * sine[i] + b * cosine[i];
        }
    } else {
        for (int64_t i = 0; i < pairs; ++i) {
            const float a = x[2 * i], b = x[2 * i + 1];
            y[2 * i] = a * cosine[i] - b * sine[i];
            y[2 * i + 1] = a * sine[i] + b * cosine[i];
        }
    }
    if (x != y) std::memcpy(y + 2 * pairs, x + 2 * pairs, size_t(d - 2 * pairs) * sizeof(float));
}

class RopeKernel final : public Kernel {
public:
    RopeKernel(const Problem &p, Features features)
        : x_(p.in[0]),
          cut_(Cut::of(x_.shape[0], 2 * x_.shape[1] * x_.shape[2])),
          pos_step_(p.in[1].stride[0]),
          has_factors_(p.input(2) != nullptr),
          halves_(p.as<tn_params_rope>().pairing == TN_ROPE_HALVES),
          magnitude_(magnitude_of(p.as<tn_params_rope>())),
          turns_(turns_of(p.as<tn_params_rope>())),
          table_(choose(k_table, features).fn) {}

    int64_t pieces(int) const noexcept override { return cut_.pieces(); }

    void piece(const Args &args, int, int64_t i) const noexcept override {
        const int64_t pairs = int64_t(turns_.size()), heads = x_.shape[1], d = x_.shape[2];
        double scaled[k_max_pairs];
        const double *turns = turns_.data();
        if (has_factors_) {
            const float *factors = args.input<float>(2);
            for (int64_t j = 0; j < pairs; ++j) scaled[j] = turns_[size_t(j)] / double(factors[j]);
            turns = scaled;
        }
        float table[2 * k_max_pairs];
        for (int64_t token = cut_.first(i); token < cut_.last(i); ++token) {
            table_(turns, pairs, double(*args.input<int32_t>(1, token * pos_step_)), magnitude_, table);
            for (int64_t row = token * heads; row < (token + 1) * heads; ++row) {
                rotate(args.input<float>(0, x_.row_offset(row)), args.output<float>(0) + row * d, d, table, pairs,
                       halves_);
            }
        }
    }

private:
    Operand x_;
    Cut cut_;
    int64_t pos_step_;
    bool has_factors_, halves_;
    float magnitude_;
    std::vector<double> turns_;
    RopeTableFn table_;
};

std::string refuse(const Problem &p) {
    const auto &params = p.as<tn_params_rope>();
    Check check(p);
    check.activation_in(0).in(1, {TN_TYPE_ID_I32}).activation_out(0);
    check.require([&] { return p.in[0].rank == 3 && p.out[0].same_shape(p.in[0]); },
                  "x and the output aren't [t, h, d]");
    check.require([&] { return p.in[1].rank == 1 && p.in[1].shape[0] == p.in[0].shape[0]; }, "positions aren't [t]");
    check.require([&] { return params.dims % 2 == 0 && params.dims <= p.in[0].shape[2]; },
                  "dims is odd or more than a head has");
    check.require([&] { return params.dims / 2 <= k_max_pairs; }, "more than 2048 rotated dimensions");
    check.require([&] { return params.pairing <= TN_ROPE_HALVES; }, "unknown pairing");
    check.require([&] { return params.scale > 0 && params.base > 0; }, "base or scale isn't positive");
    check.require([&] { return params.ext_factor <= 0 || params.original_context > 0; },
                  "YaRN without original_context");
    return check.optional_vector(2, params.dims / 2).reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features features) {
    return std::make_unique<RopeKernel>(p, features);
}

constexpr Op k_ops[] = {{TN_OP_ROPE, refuse, make}};

}  // namespace

std::span<const Op> ops_rope() {
    return k_ops;
}

}  // namespace tenon::cpu
