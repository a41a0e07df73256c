// linear: y = x W^T; linear_bias: the same + b.
#include "linear.h"

namespace tenon::cpu {
namespace {

// Quantises the activations, if the product wants them so, in a phase of their own.
class LinearKernel final : public Kernel {
public:
    LinearKernel(const Problem &p, Features features)
        : x_(p.in[0]),
          linear_(p.in[0], p.in[1], p.exact, features),
          quantize_(choose_quantize_q8(features)),
          bias_(p.in.size() > 2),
          cut_(Cut::of(linear_.tokens(), linear_.in())) {}

    uint64_t scratch_bytes() const noexcept override {
        return linear_.quantised() ? Q8Matrix::bytes(linear_.tokens(), linear_.in()) : 0;
    }
    int phases() const noexcept override { return linear_.quantised() ? 2 : 1; }
    int64_t pieces(int phase) const noexcept override {
        return phase + 1 == phases() ? linear_.pieces() : cut_.pieces();
    }

    void piece(const Args &args, int phase, int64_t i) const noexcept override {
        Activations x{args.in[0], &x_, {}};
        if (linear_.quantised()) x.q8 = Q8Matrix(args.scratch, linear_.tokens(), linear_.in());
        if (phase + 1 == phases()) {
            linear_.piece(i, x, args.in[1], bias_ ? args.input<float>(2) : nullptr, args.output<float>(0));
            return;
        }
        for (int64_t t = cut_.first(i); t < cut_.last(i); ++t) x.quantize_row(quantize_, t, linear_.in());
    }

private:
    Operand x_;
    Linear linear_;
    QuantizeQ8Fn quantize_;
    bool bias_;
    Cut cut_;
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
