// rms_norm: x / sqrt(mean(x^2) + eps) * w;  layer_norm: (x - mean) / sqrt(var + eps) * w + b. Over the last dimension.
#include "norm.h"

#include <cmath>

namespace tenon::cpu {
namespace {

// Sums in double: these rows also serve as the yardstick for the others.
void rms_norm(const float *x, const float *w, float *y, int64_t n, float eps) {
    double squares = 0;
    for (int64_t i = 0; i < n; ++i) squares += double(x[i]) * double(x[i]);
    const float factor = float(1.0 / std::sqrt(squares / double(n) + double(eps)));
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * factor * (w != nullptr ? w[i] : 1.0f);
}

void layer_norm(const float *x, const float *w, const float *b, float *y, int64_t n, float eps) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) sum += double(x[i]);
    const double mean = sum / double(n);
    for (int64_t i = 0; i < n; ++i) squares += (double(x[i]) - mean) * (double(x[i]) - mean);
    const double factor = 1.0 / std::sqrt(squares / double(n) + double(eps));
    for (int64_t i = 0; i < n; ++i) {
        const float normal = float((double(x[i]) - mean) * factor);
        y[i] = normal * (w != nullptr ? w[i] : 1.0f) + (b != nullptr ? b[i] : 0.0f);
    }
}

constexpr Row<RmsNormFn> k_rms_norm[] = {{"avx2", isa_avx2, rms_norm_avx2}, {"reference", 0, rms_norm}};

std::string refuse(const Problem &p) {
    Check check(p);
    check.activation_in(0).require([&] { return p.in[0].rank >= 1; }, "a scalar has no row to normalise");
    check.activation_out(0).require([&] { return p.out[0].same_shape(p.in[0]); }, "input and output differ in shape");
    const int64_t n = p.in.empty() ? 0 : p.in[0].last();
    return check.optional_vector(1, n).optional_vector(2, n).reason();
}

std::unique_ptr<Kernel> make_rms(const Problem &p, Features features) {
    return make_kernel(Cut::of(p.in[0].rows(), 2 * p.in[0].last()),
                       [x = p.in[0], eps = p.as<tn_params_norm>().eps, weighted = p.input(1) != nullptr,
                        norm = choose_rms_norm(features)](const Args &args, int64_t first, int64_t last) {
                           const float *w = weighted ? args.input<float>(1) : nullptr;
                           for (int64_t r = first; r < last; ++r) {
                               norm(args.input<float>(0, x.row_offset(r)), w, args.output<float>(0) + r * x.last(),
                                    x.last(), eps);
                           }
                       });
}

std::unique_ptr<Kernel> make_layer(const Problem &p, Features) {
    return make_kernel(Cut::of(p.in[0].rows(), 2 * p.in[0].last()),
                       [x = p.in[0], eps = p.as<tn_params_norm>().eps, weighted = p.input(1) != nullptr,
                        biased = p.input(2) != nullptr](const Args &args, int64_t first, int64_t last) {
                           const float *w = weighted ? args.input<float>(1) : nullptr,
                                       *b = biased ? args.input<float>(2) : nullptr;
                           for (int64_t r = first; r < last; ++r) {
                               layer_norm(args.input<float>(0, x.row_offset(r)), w, b,
                                          args.output<float>(0) + r * x.last(), x.last(), eps);
                           }
                       });
}

constexpr Op k_ops[] = {{TN_OP_RMS_NORM, refuse, make_rms}, {TN_OP_LAYER_NORM, refuse, make_layer}};

}  // namespace

RmsNormFn choose_rms_norm(Features have) noexcept {
    return choose(k_rms_norm, have).fn;
}

std::span<const Op> ops_norm() {
    return k_ops;
}

}  // namespace tenon::cpu
