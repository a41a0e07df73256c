// softmax: exp(scale x + mask) over its sum, over the last dimension; a row of -inf gives zeros. In place on x.
#include "kernel.h"
#include "rows/choose.h"

namespace tenon::cpu {
namespace {

std::string refuse(const Problem &p) {
    Check check(p);
    check.in(0, {TN_TYPE_ID_F32}).optional_in(1, {TN_TYPE_ID_F32}).activation_out(0);
    check.require([&] { return p.in[0].rank >= 1 && p.out[0].same_shape(p.in[0]); },
                  "input and output differ in shape");
    return check
        .require([&] { return p.input(1) == nullptr || p.in[1].same_shape(p.in[0]); }, "the mask isn't broadcast to x")
        .reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features features) {
    return make_kernel(Cut::of(p.in[0].rows(), 6 * p.in[0].last()),
                       [x = p.in[0], mask = p.input(1) != nullptr ? p.in[1] : Operand(),
                        scale = p.as<tn_params_softmax>().scale, max = choose_max(features),
                        exp_sum = choose_exp_sum(features)](const Args &args, int64_t first, int64_t last) {
                           const int64_t n = x.last(), step = x.last_stride() / int64_t(sizeof(float));
                           const int64_t mask_step = mask.last_stride() / int64_t(sizeof(float));
                           for (int64_t r = first; r < last; ++r) {
                               const float *from = args.input<float>(0, x.row_offset(r));
                               float *y = args.output<float>(0) + r * n;
                               for (int64_t i = 0; i < n; ++i) y[i] = scale * from[i * step];
                               if (mask.present()) {
                                   const float *added = args.input<float>(1, mask.row_offset(r));
                                   for (int64_t i = 0; i < n; ++i) y[i] += added[i * mask_step];
                               }
                               const float sum = exp_sum(y, n, max(y, n));
                               if (sum == 0) continue;  // a row of -inf, all zeros by now
                               for (int64_t i = 0; i < n; ++i) y[i] /= sum;
                           }
                       });
}

constexpr Op k_ops[] = {{TN_OP_SOFTMAX, refuse, make}};

}  // namespace

std::span<const Op> ops_softmax() {
    return k_ops;
}

}  // namespace tenon::cpu
