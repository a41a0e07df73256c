// linear on every instruction set, weight type and precision, against a product in float64 of the decoded weights.
#include "linear.h"

#include "fused.h"
#include "testing/harness.h"

namespace tenon::cpu {
namespace {

using testing::Bytes;
using testing::Random;

Problem problem_of(Operand x, Operand w, bool exact) {
    Problem p;
    p.op = TN_OP_LINEAR;
    p.exact = exact;
    Operand y = Operand::dense(TN_TYPE_ID_F32, {x.rows(), w.shape[0]});
    p.in = {x, w};
    p.out = {y};
    return p;
}

// The squared error of a product, relative to the squares of its terms: where terms cancel, the sum itself is no
// measure.
double error(const Operand &x, const Bytes &xs, const Operand &w, const Bytes &ws, const Bytes &got) {
    const std::vector<double> weights = testing::decoded(w, ws.data());
    const int64_t in = x.last(), out = w.shape[0];
    double squared = 0, power = 0;
    for (int64_t t = 0; t < x.rows(); ++t) {
        for (int64_t r = 0; r < out; ++r) {
            double off = -double(got.as<float>()[t * out + r]);
            for (int64_t i = 0; i < in; ++i) {
                const double term = testing::element(x, xs.data(), t * in + i) * weights[size_t(r * in + i)];
                off += term;
                power += term * term;
            }
            squared += off * off;
        }
    }
    return power == 0 ? squared : squared / power;
}

struct Shape {
    int64_t tokens, in, out;
};

TEST_CASE("linear: agrees with float64 over types, shapes, precisions, instruction sets") {
    const Shape shapes[] = {{1, 32, 1},   {1, 576, 7},  {2, 64, 5},     {3, 96, 4}, {1, 2080, 65}, {7, 2080, 9},
                            {65, 64, 33}, {130, 32, 3}, {16, 576, 130}, {0, 32, 3}, {2, 32, 0},    {5, 0, 6}};
    Random random(11);
    for (uint32_t type : testing::weight_types()) {
        for (Shape s : shapes) {
            const int64_t block = block_of(type).elements;
            s.in = (s.in + block - 1) / block * block;
            const Operand x = Operand::dense(TN_TYPE_ID_F32, {s.tokens, s.in}), w = Operand::dense(type, {s.out, s.in});
            // As in a file: F32 aligned to its size, the others anywhere.
            const Bytes xs = random.f32(x), ws = random.weights(w, type == TN_TYPE_ID_F32 ? 4 : 2);
            for (Features features : testing::feature_sets()) {
                for (bool exact : {true, false}) {
                    CAPTURE(type_name(type));
                    CAPTURE(s.tokens);
                    CAPTURE(s.in);
                    CAPTURE(s.out);
                    CAPTURE(features);
                    CAPTURE(exact);
                    const auto y = testing::run(problem_of(x, w, exact), {&xs, &ws}, features);
                    // 8-bit activations err by 1 / 127 / sqrt(12) of a block's largest element at most.
                    CHECK(error(x, xs, w, ws, y[0]) <= (exact ? 1e-11 : 2e-4));
                }
            }
        }
    }
}

TEST_CASE("linear: inputs that don't fill whole vectors") {
    Random random(12);
    for (int64_t in : {1, 3, 7, 9, 31, 33, 1025}) {
        const Operand x = Operand::dense(TN_TYPE_ID_F32, {3, in}), w = Operand::dense(TN_TYPE_ID_F16, {6, in});
        const Bytes xs = random.f32(x), ws = random.weights(w, 2);
        for (Features features : testing::feature_sets()) {
            const auto y = testing::run(problem_of(x, w, false), {&xs, &ws}, features);
            CHECK(error(x, xs, w, ws, y[0]) <= 1e-11);
        }
    }
}

TEST_CASE("linear: strided activations and weight rows") {
    Random random(13);
    Operand x = Operand::dense(TN_TYPE_ID_F32, {2, 3, 64}), w = Operand::dense(TN_TYPE_ID_Q8_0, {9, 64});
    x.stride = {4 * 1000, 4 * 96, 4};
    w.stride = {34 * 5, 34};
    const Bytes xs = random.f32(x), ws = random.weights(w, 2);
    for (Features features : testing::feature_sets()) {
        const auto y = testing::run(problem_of(x, w, true), {&xs, &ws}, features);
        CHECK(error(x, xs, w, ws, y[0]) <= 1e-11);
    }
}

TEST_CASE("linear: the same bits whatever the number of threads") {
    Random random(14);
    for (int64_t tokens : {1, 5, 70}) {
        for (uint32_t type : {TN_TYPE_ID_Q4_1, TN_TYPE_ID_Q8_0, TN_TYPE_ID_F32}) {
            const Operand x = Operand::dense(TN_TYPE_ID_F32, {tokens, 576}), w = Operand::dense(type, {643, 576});
            const Bytes xs = random.f32(x), ws = random.weights(w, type == TN_TYPE_ID_F32 ? 4 : 2);
            for (Features features : testing::feature_sets()) {
                for (bool exact : {true, false}) {
                    const Problem p = problem_of(x, w, exact);
                    const auto one = testing::run(p, {&xs, &ws}, features, 1);
                    for (unsigned threads : {2u, 3u, 5u}) CHECK(testing::run(p, {&xs, &ws}, features, threads) == one);
                }
            }
        }
    }
}

TEST_CASE("linear: NaN and infinity in a token spoil that token only") {
    Random random(15);
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        for (uint32_t type : {TN_TYPE_ID_Q4_0, TN_TYPE_ID_Q4_1, TN_TYPE_ID_Q8_0, TN_TYPE_ID_F16}) {
            const Operand x = Operand::dense(TN_TYPE_ID_F32, {3, 96}), w = Operand::dense(type, {5, 96});
            Bytes xs = random.f32(x);
            const Bytes ws = random.weights(w, 2);
            xs.as<float>()[96 + 40] = bad;
            for (Features features : testing::feature_sets()) {
                const auto y = testing::run(problem_of(x, w, false), {&xs, &ws}, features);
                for (int i = 0; i < 15; ++i) CHECK(std::isfinite(y[0].as<float>()[i]) == (i / 5 != 1));
            }
        }
    }
}

TEST_CASE("linear_bias: adds the bias to each token") {
    Random random(16);
    Problem p = problem_of(Operand::dense(TN_TYPE_ID_F32, {3, 64}), Operand::dense(TN_TYPE_ID_Q4_0, {10, 64}), false);
    const Bytes xs = random.f32(p.in[0]), ws = random.weights(p.in[1], 2);
    const Operand bias = Operand::dense(TN_TYPE_ID_F32, {10});
    const Bytes bs = random.f32(bias);
    Problem with = p;
    with.op = TN_OP_LINEAR_BIAS;
    with.in.push_back(bias);
    const auto plain = testing::run(p, {&xs, &ws}, detect_isa()),
               biased = testing::run(with, {&xs, &ws, &bs}, detect_isa(), 2);
    for (int i = 0; i < 30; ++i) CHECK(biased[0].as<float>()[i] == plain[0].as<float>()[i] + bs.as<float>()[i % 10]);
}

TEST_CASE("linear: what doesn't fit is refused with the reason") {
    const Op &op = *find_op(TN_OP_LINEAR);
    const Operand x = Operand::dense(TN_TYPE_ID_F32, {2, 64}), w = Operand::dense(TN_TYPE_ID_Q4_0, {8, 64});
    Problem p = problem_of(x, w, false);
    CHECK(op.refuse(p) == "");
    p.in[0].type = TN_TYPE_ID_F16;
    CHECK(op.refuse(p) == "input 0 is f16, not f32");
    p = problem_of(x, Operand::dense(TN_TYPE_ID_IQ2_S, {8, 256}), false);
    CHECK(op.refuse(p).starts_with("the weight's type iq2_s has no decoder here (types: bf16, "));
    p = problem_of(x, Operand::dense(TN_TYPE_ID_Q4_0, {8, 32}), false);
    CHECK(op.refuse(p).find("[out, in]") != std::string::npos);
    p = problem_of(x, w, false);
    p.out[0].stride[0] *= 2;
    CHECK(op.refuse(p) == "output 0 isn't contiguous");
    CHECK(op.refuse(Problem{}) == "input 0 is missing");
}

TEST_CASE("norm and products as one group: the same bits as one by one") {
    Random random(17);
    for (int64_t tokens : {1, 2, 37, 130}) {
        for (bool weighted : {true, false}) {
            for (bool exact : {true, false}) {
                Problem norm;
                norm.op = TN_OP_RMS_NORM;
                norm.exact = exact;
                const Operand x = Operand::dense(TN_TYPE_ID_F32, {tokens, 96});
                norm.in = {x, weighted ? Operand::dense(TN_TYPE_ID_F32, {96}) : Operand()};
                norm.out = {x};
                auto params = testing::params<tn_params_norm>();
                params.eps = 1e-5f;
                norm.set(params);
                const Bytes xs = random.f32(x), ns = random.f32(Operand::dense(TN_TYPE_ID_F32, {96}));
                const std::pair<uint32_t, int64_t> weights[] = {
                    {TN_TYPE_ID_Q4_1, 96}, {TN_TYPE_ID_F32, 33}, {TN_TYPE_ID_Q8_0, 261}};
                std::vector<Problem> products;
                std::vector<Bytes> ws;
                for (auto [type, out] : weights) {
                    products.push_back(problem_of(x, Operand::dense(type, {out, 96}), exact));
                    ws.push_back(random.weights(products.back().in[1], 4));
                }
                for (Features features : testing::feature_sets()) {
                    const auto normal = testing::run(norm, {&xs, weighted ? &ns : nullptr}, features, 2);
                    std::vector<Bytes> alone, fused;
                    std::vector<const std::byte *> in = {xs.data(), weighted ? ns.data() : nullptr};
                    std::vector<std::byte *> out;
                    for (size_t i = 0; i < products.size(); ++i) {
                        alone.push_back(testing::run(products[i], {&normal[0], &ws[i]}, features, 2)[0]);
                        fused.emplace_back(alone.back().size(), 4);
                        in.push_back(ws[i].data());
                    }
                    for (Bytes &b : fused) out.push_back(b.data());
                    for (unsigned threads : {1u, 3u}) {
                        testing::run_on(*make_norm_linear(norm, products, features), in, out, threads);
                        CHECK(fused == alone);
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace tenon::cpu
