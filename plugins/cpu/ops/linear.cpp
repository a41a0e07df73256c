// linear: y = x W^T; linear_bias: the same + b.
#include "linear.h"

namespace tenon::cpu {
namespace {

// Prepares the activations, meets, then the team claims pieces.
class LinearKernel final : public Kernel {
public:
    LinearKernel(const Problem &p, Features features)
        : x_(p.in[0]),
          linear_(p.in[0], p.in[1], p.exact, features),
          quantize_(choose_quantize_q8(features)),
          bias_(p.in.size() > 2),
          out_(p.out[0].last()) {}

    uint64_t scratch_bytes() const noexcept override {
        return linear_.quantised() ? Q8Matrix::bytes(linear_.tokens(), linear_.in()) : 0;
    }

    void run(const Args &args, Crew &crew) const noexcept override {
        Activations x{args.in[0], &x_, {}};
        if (linear_.quantised()) {
            x.q8 = Q8Matrix(args.scratch, linear_.tokens(), linear_.in());
            quantize_rows(quantize_, x, linear_.tokens(), linear_.in(), crew);
            crew.barrier();
        }
        float *y = args.output<float>(0);
        for (int64_t i = crew.next(); i < linear_.pieces(); i = crew.next()) linear_.piece(i, x, args.in[1], y);
        if (!bias_) return;
        crew.barrier();
        const float *bias = args.input<float>(2);
        const auto [first, last] = crew.share(linear_.tokens());
        for (int64_t t = first; t < last; ++t) {
            for (int64_t i = 0; i < out_; ++i) y[t * out_ + i] += bias[i];
        }
    }

private:
    Operand x_;
    Linear linear_;
    QuantizeQ8Fn quantize_;
    bool bias_;
    int64_t out_;
};

std::string refuse_linear(const Problem &p) {
    Check check(p);
    Linear::check(check, p);
    return check.reason();
}

std::string refuse_bias(const Problem &p) {
    Check check(p);
    Linear::check(check, p);
    check.require([&] { return p.input(2) != nullptr; }, "the bias is missing");
    return check.optional_vector(2, p.in.size() > 1 ? p.in[1].shape[0] : 0).reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features features) {
    return std::make_unique<LinearKernel>(p, features);
}

constexpr Op k_ops[] = {{TN_OP_LINEAR, refuse_linear, make}, {TN_OP_LINEAR_BIAS, refuse_bias, make}};

}  // namespace

std::span<const Op> ops_linear() {
    return k_ops;
}

}  // namespace tenon::cpu
