#include "fused.h"

#include "linear.h"
#include "norm.h"

namespace tenon::cpu {
namespace {

class NormLinearKernel final : public Kernel {
public:
    NormLinearKernel(const Problem &norm, const std::vector<Problem> &products, Features features)
        : x_(norm.in[0]),
          normal_(norm.out[0]),
          cut_(Cut::of(normal_.rows(), 3 * normal_.last())),
          eps_(norm.as<tn_params_norm>().eps),
          weighted_(norm.input(1) != nullptr),
          norm_(choose_rms_norm(features)),
          quantize_(choose_quantize_q8(features)) {
        for (const Problem &p : products) {
            products_.emplace_back(p.in[0], p.in[1], p.exact, features);
            quantised_ = quantised_ || products_.back().quantised();
            pieces_ += products_.back().pieces();
        }
    }

    uint64_t scratch_bytes() const noexcept override {
        return normal_bytes() + (quantised_ ? Q8Matrix::bytes(normal_.rows(), normal_.last()) : 0);
    }

    int phases() const noexcept override { return 2; }
    int64_t pieces(int phase) const noexcept override { return phase == 0 ? cut_.pieces() : pieces_; }

    void piece(const Args &args, int phase, int64_t i) const noexcept override {
        const int64_t n = normal_.last();
        const Activations x{args.scratch, &normal_, Q8Matrix(args.scratch + normal_bytes(), normal_.rows(), n)};
        if (phase == 1) {
            size_t product = 0;
            while (i >= products_[product].pieces()) i -= products_[product++].pieces();
            products_[product].piece(i, x, args.in[2 + product], nullptr, args.output<float>(product));
            return;
        }
        const float *w = weighted_ ? args.input<float>(1) : nullptr;
        for (int64_t r = cut_.first(i); r < cut_.last(i); ++r) {
            norm_(args.input<float>(0, x_.row_offset(r)), w, reinterpret_cast<float *>(args.scratch) + r * n, n, eps_);
            if (quantised_) x.quantize_row(quantize_, r, n);
        }
    }

private:
    // Padded, so that what follows is aligned.
    uint64_t normal_bytes() const noexcept { return (uint64_t(normal_.elements()) * sizeof(float) + 63) / 64 * 64; }

    Operand x_, normal_;
    Cut cut_;
    float eps_;
    bool weighted_, quantised_ = false;
    RmsNormFn norm_;
    QuantizeQ8Fn quantize_;
    std::vector<Linear> products_;
    int64_t pieces_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_norm_linear(const Problem &norm, const std::vector<Problem> &products, Features features) {
    return std::make_unique<NormLinearKernel>(norm, products, features);
}

}  // namespace tenon::cpu
