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

    void run(const Args &args, Crew &crew) const noexcept override {
        const int64_t rows = normal_.rows(), n = normal_.last();
        Activations x{args.scratch, &normal_, Q8Matrix(args.scratch + normal_bytes(), rows, n)};
        const float *w = weighted_ ? args.input<float>(1) : nullptr;
        const auto [first, last] = crew.share(rows);
        for (int64_t r = first; r < last; ++r) {
            float *to = reinterpret_cast<float *>(args.scratch) + r * n;
            norm_(args.input<float>(0, x_.row_offset(r)), w, to, n, eps_);
            if (quantised_) quantize_(to, n, x.q8.q(r), x.q8.pairs(r), x.q8.sums(r));
        }
        crew.barrier();
        for (int64_t claimed = crew.next(); claimed < pieces_; claimed = crew.next()) {
            int64_t piece = claimed;
            size_t product = 0;
            while (piece >= products_[product].pieces()) piece -= products_[product++].pieces();
            products_[product].piece(piece, x, args.in[2 + product], args.output<float>(product));
        }
    }

private:
    // Padded, so that what follows is aligned.
    uint64_t normal_bytes() const noexcept { return (uint64_t(normal_.elements()) * sizeof(float) + 63) / 64 * 64; }

    Operand x_, normal_;
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
