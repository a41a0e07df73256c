// Elementwise ops, norms, softmax and rope against float64, on every instruction set.
#include <functional>

#include "testing/harness.h"

namespace tenon::cpu {
namespace {

using testing::Bytes;
using testing::Random;

Problem unary(uint32_t op, const Operand &x) {
    Problem p;
    p.op = op;
    p.in = {x};
    p.out = {x.contiguous() ? x : Operand::dense(TN_TYPE_ID_F32, {x.shape[0], x.shape[1]})};
    return p;
}

double sigmoid(double x) {
    return 1 / (1 + std::exp(-x));
}
double gelu(double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double silu(double x) {
    return x * sigmoid(x);
}

const std::vector<std::pair<uint32_t, std::function<double(double)>>> &functions() {
    static const std::vector<std::pair<uint32_t, std::function<double(double)>>> all = {
        {TN_OP_NEG, [](double x) { return -x; }},
        {TN_OP_ABS, [](double x) { return std::fabs(x); }},
        {TN_OP_SQR, [](double x) { return x * x; }},
        {TN_OP_SQRT, [](double x) { return std::sqrt(x); }},
        {TN_OP_RSQRT, [](double x) { return 1 / std::sqrt(x); }},
        {TN_OP_EXP, [](double x) { return std::exp(x); }},
        {TN_OP_LOG, [](double x) { return std::log(x); }},
        {TN_OP_SIN, [](double x) { return std::sin(x); }},
        {TN_OP_COS, [](double x) { return std::cos(x); }},
        {TN_OP_TANH, [](double x) { return std::tanh(x); }},
        {TN_OP_SIGMOID, sigmoid},
        {TN_OP_RELU, [](double x) { return std::max(x, 0.0); }},
        {TN_OP_SILU, silu},
        {TN_OP_GELU, gelu},
        {TN_OP_GELU_ERF, [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
        {TN_OP_GELU_QUICK, [](double x) { return x * sigmoid(1.702 * x); }},
        {TN_OP_SOFTPLUS, [](double x) { return x > 30 ? x : std::log1p(std::exp(x)); }},
    };
    return all;
}

TEST_CASE("unary: within a few units in the last place of float64, at every size of a row's end") {
    Random random(31);
    for (const auto &[op, f] : functions()) {
        for (int64_t n : {1, 7, 8, 9, 16, 31, 1000}) {
            const Operand x = Operand::dense(TN_TYPE_ID_F32, {n});
            Bytes xs = random.f32(x, 4);
            const bool positive = op == TN_OP_SQRT || op == TN_OP_RSQRT || op == TN_OP_LOG;
            for (int64_t i = 0; i < n; ++i) {
                if (n == 1000) xs.as<float>()[i] = std::ldexp(xs.as<float>()[i], -int(i % 30));
                if (positive) xs.as<float>()[i] = std::fabs(xs.as<float>()[i]);
            }
            for (Features features : testing::feature_sets()) {
                const auto y = testing::run(unary(op, x), {&xs}, features, n > 500 ? 3 : 1);
                for (int64_t i = 0; i < n; ++i) {
                    const double expected = f(double(xs.as<float>()[i]));
                    CAPTURE(op);
                    CAPTURE(features);
                    CAPTURE(xs.as<float>()[i]);
                    CHECK(std::fabs(double(y[0].as<float>()[i]) - expected) <=
                          3e-6 * std::fabs(expected) + 1e-7 * (op == TN_OP_LOG || op == TN_OP_GELU));
                }
            }
        }
    }
}

TEST_CASE("unary: edges of exp, and NaN everywhere") {
    const Operand x = Operand::dense(TN_TYPE_ID_F32, {9});
    Bytes xs(36, 4);
    const float edges[] = {-INFINITY, -1000, -104, -100, -88, 0, 88, 89, INFINITY};
    std::memcpy(xs.data(), edges, sizeof edges);
    for (Features features : testing::feature_sets()) {
        const auto y = testing::run(unary(TN_OP_EXP, x), {&xs}, features);
        for (int i = 0; i < 9; ++i) {
            const float expected = std::exp(edges[i]);
            CAPTURE(edges[i]);
            if (std::isinf(expected) || expected == 0) {
                CHECK(y[0].as<float>()[i] == expected);
            } else {
                CHECK(std::fabs(y[0].as<float>()[i] - expected) <= 3e-7f * expected + 2e-45f);
            }
        }
        for (const auto &[op, f] : functions()) {
            Bytes nan(36, 4);
            for (int i = 0; i < 9; ++i) nan.as<float>()[i] = NAN;
            const auto spoilt = testing::run(unary(op, x), {&nan}, features);
            for (int i = 0; i < 9; ++i) CHECK(std::isnan(spoilt[0].as<float>()[i]));
        }
    }
}

TEST_CASE("unary: strided and transposed inputs") {
    Random random(32);
    Operand x = Operand::dense(TN_TYPE_ID_F32, {5, 7});
    x.stride = {4, 4 * 9};
    const Bytes xs = random.f32(x);
    for (Features features : testing::feature_sets()) {
        const auto y = testing::run(unary(TN_OP_SILU, x), {&xs}, features, 2);
        for (int64_t i = 0; i < 35; ++i) {
            CHECK(double(y[0].as<float>()[i]) ==
                  doctest::Approx(silu(testing::element(x, xs.data(), i))).epsilon(1e-6));
        }
    }
}

TEST_CASE("affine and clamp: NaN passes, in place") {
    const Operand x = Operand::dense(TN_TYPE_ID_F32, {4});
    Problem p = unary(TN_OP_AFFINE, x);
    auto affine = testing::params<tn_params_affine>();
    affine.a = 2, affine.b = -1;
    p.set(affine);
    Bytes xs(16, 4);
    const float values[] = {-3, 0.5f, NAN, 8};
    std::memcpy(xs.data(), values, 16);
    const auto y = testing::run(p, {&xs}, isa_reference);
    CHECK(y[0].as<float>()[0] == -7);
    CHECK(y[0].as<float>()[3] == 15);
    p.op = TN_OP_CLAMP;
    auto clamp = testing::params<tn_params_clamp>();
    clamp.lo = -1, clamp.hi = 1;
    p.set(clamp);
    testing::run_on(*find_op(p.op)->make(p, isa_reference), {xs.data()}, {xs.data()}, 2);
    CHECK(xs.as<float>()[0] == -1);
    CHECK(xs.as<float>()[1] == 0.5f);
    CHECK(std::isnan(xs.as<float>()[2]));
    CHECK(xs.as<float>()[3] == 1);
}

TEST_CASE("binary and gated: every op, broadcast by stride 0, in place on the first") {
    Random random(33);
    const std::vector<std::pair<uint32_t, std::function<double(double, double)>>> ops = {
        {TN_OP_ADD, [](double a, double b) { return a + b; }},
        {TN_OP_SUB, [](double a, double b) { return a - b; }},
        {TN_OP_MUL, [](double a, double b) { return a * b; }},
        {TN_OP_DIV, [](double a, double b) { return a / b; }},
        {TN_OP_MAX, [](double a, double b) { return std::max(a, b); }},
        {TN_OP_MIN, [](double a, double b) { return std::min(a, b); }},
        {TN_OP_SWIGLU, [](double a, double b) { return silu(a) * b; }},
        {TN_OP_GEGLU, [](double a, double b) { return gelu(a) * b; }},
        {TN_OP_REGLU, [](double a, double b) { return std::max(a, 0.0) * b; }},
    };
    const Operand full = Operand::dense(TN_TYPE_ID_F32, {3, 19});
    Operand row = full, column = full, scalar = full;
    row.stride = {0, 4};
    column.stride = {4, 0};
    scalar.stride = {0, 0};
    for (const auto &[op, f] : ops) {
        for (const Operand &b : {full, row, column, scalar}) {
            if (op >= TN_OP_SWIGLU && !b.dense_rows()) continue;
            Problem p;
            p.op = op;
            p.in = {full, b};
            p.out = {full};
            Bytes as = random.f32(full);
            const Bytes bs = random.f32(b);
            for (Features features : testing::feature_sets()) {
                const auto y = testing::run(p, {&as, &bs}, features, 2);
                for (int64_t i = 0; i < 57; ++i) {
                    const double expected = f(testing::element(full, as.data(), i), testing::element(b, bs.data(), i));
                    CAPTURE(op);
                    CHECK(double(y[0].as<float>()[i]) == doctest::Approx(expected).epsilon(3e-6));
                }
                Bytes in_place = as;
                testing::run_on(*find_op(op)->make(p, features), {in_place.data(), bs.data()}, {in_place.data()}, 3);
                CHECK(in_place == y[0]);
            }
        }
    }
}

TEST_CASE("norms: against float64, weights and bias optional, in any layout of rows") {
    Random random(34);
    for (int64_t d : {1, 8, 37, 576}) {
        for (int shape = 0; shape < 3; ++shape) {
            Operand x = Operand::dense(TN_TYPE_ID_F32, {5, d});
            if (shape == 2) x.stride[0] += 64;
            const Operand vector = Operand::dense(TN_TYPE_ID_F32, {d});
            for (uint32_t op : {TN_OP_RMS_NORM, TN_OP_LAYER_NORM}) {
                Problem p;
                p.op = op;
                p.in = {x, shape > 0 ? vector : Operand()};
                if (op == TN_OP_LAYER_NORM) p.in.push_back(shape > 1 ? vector : Operand());
                p.out = {Operand::dense(TN_TYPE_ID_F32, {5, d})};
                auto params = testing::params<tn_params_norm>();
                params.eps = 1e-5f;
                p.set(params);
                const Bytes xs = random.f32(x, 3), w = random.f32(vector), b = random.f32(vector);
                std::vector<double> expected;
                for (int64_t r = 0; r < 5; ++r) {
                    double mean = 0, squares = 0;
                    const auto at = [&](int64_t i) { return testing::element(x, xs.data(), r * d + i); };
                    for (int64_t i = 0; i < d && op == TN_OP_LAYER_NORM; ++i) mean += at(i) / double(d);
                    for (int64_t i = 0; i < d; ++i) squares += (at(i) - mean) * (at(i) - mean) / double(d);
                    for (int64_t i = 0; i < d; ++i) {
                        const double normal = (at(i) - mean) / std::sqrt(squares + 1e-5);
                        const bool biased = op == TN_OP_LAYER_NORM && shape > 1;
                        expected.push_back(normal * (shape > 0 ? double(w.as<float>()[i]) : 1.0) +
                                           (biased ? double(b.as<float>()[i]) : 0));
                    }
                }
                for (Features features : testing::feature_sets()) {
                    const auto y =
                        testing::run(p, {&xs, shape > 0 ? &w : nullptr, shape > 1 ? &b : nullptr}, features, 2);
                    CHECK(testing::nmse(expected, y[0].as<float>()) <= 1e-12);
                }
            }
        }
    }
}

TEST_CASE("softmax: with a broadcast mask; rows of -inf give zeros; NaN spreads over its row") {
    Random random(35);
    for (int64_t n : {1, 5, 8, 67}) {
        const Operand x = Operand::dense(TN_TYPE_ID_F32, {4, n});
        Operand mask = x;
        mask.stride[0] = 0;
        Problem p;
        p.op = TN_OP_SOFTMAX;
        p.in = {x, mask};
        p.out = {x};
        auto params = testing::params<tn_params_softmax>();
        params.scale = 0.7f;
        p.set(params);
        Bytes xs = random.f32(x, 3);
        const Bytes ms = random.f32(mask);
        for (int64_t i = 0; i < n; ++i) xs.as<float>()[n + i] = -INFINITY;
        xs.as<float>()[2 * n] = NAN;
        for (Features features : testing::feature_sets()) {
            const auto y = testing::run(p, {&xs, &ms}, features, 2);
            for (int64_t r : {0, 3}) {
                double sum = 0;
                for (int64_t i = 0; i < n; ++i)
                    sum += std::exp(0.7 * double(xs.as<float>()[r * n + i]) + double(ms.as<float>()[i]));
                for (int64_t i = 0; i < n; ++i) {
                    const double expected =
                        std::exp(0.7 * double(xs.as<float>()[r * n + i]) + double(ms.as<float>()[i])) / sum;
                    CHECK(double(y[0].as<float>()[r * n + i]) == doctest::Approx(expected).epsilon(3e-6));
                }
            }
            for (int64_t i = 0; i < n; ++i) {
                CHECK(y[0].as<float>()[n + i] == 0);
                CHECK(std::isnan(y[0].as<float>()[2 * n + i]));
            }
        }
    }
}

Problem rope_problem(int64_t tokens, int64_t heads, int64_t d, const tn_params_rope &params, bool factors) {
    Problem p;
    p.op = TN_OP_ROPE;
    p.in = {Operand::dense(TN_TYPE_ID_F32, {tokens, heads, d}), Operand::dense(TN_TYPE_ID_I32, {tokens}),
            factors ? Operand::dense(TN_TYPE_ID_F32, {int64_t(params.dims / 2)}) : Operand()};
    p.out = {p.in[0]};
    p.set(params);
    return p;
}

tn_params_rope rope_params(uint32_t dims, uint32_t pairing) {
    auto params = testing::params<tn_params_rope>();
    params.dims = dims, params.pairing = pairing, params.base = 10000, params.scale = 1, params.attn_factor = 1;
    return params;
}

TEST_CASE("rope: against float64, both pairings, factors, positions up to a million, in place") {
    Random random(36);
    for (uint32_t pairing : {TN_ROPE_ADJACENT, TN_ROPE_HALVES}) {
        for (uint32_t dims : {2u, 6u, 16u, 64u}) {
            for (bool with_factors : {false, true}) {
                tn_params_rope params = rope_params(dims, pairing);
                params.scale = with_factors ? 0.25f : 1.0f;
                const Problem p = rope_problem(4, 3, 67, params, with_factors);
                const Bytes xs = random.f32(p.in[0]), pos = Random::i32({0, 1, 4095, 1 << 20});
                Bytes factors(dims / 2 * 4, 4);
                for (uint32_t i = 0; i < dims / 2; ++i) factors.as<float>()[i] = 1 + float(i);
                std::vector<double> expected = testing::decoded(p.in[0], xs.data());
                for (int64_t row = 0; row < 12; ++row) {
                    for (uint32_t i = 0; i < dims / 2; ++i) {
                        double angle =
                            pos.as<int32_t>()[row / 3] * std::pow(10000.0, -2.0 * i / dims) * double(params.scale);
                        if (with_factors) angle /= double(factors.as<float>()[i]);
                        const size_t base = size_t(row * 67);
                        const size_t a = base + (pairing == TN_ROPE_HALVES ? i : 2 * i);
                        const size_t b = base + (pairing == TN_ROPE_HALVES ? i + dims / 2 : 2 * i + 1);
                        const double x = expected[a], y = expected[b];
                        expected[a] = x * std::cos(angle) - y * std::sin(angle);
                        expected[b] = x * std::sin(angle) + y * std::cos(angle);
                    }
                }
                for (Features features : testing::feature_sets()) {
                    const auto y = testing::run(p, {&xs, &pos, with_factors ? &factors : nullptr}, features, 3);
                    CHECK(testing::nmse(expected, y[0].as<float>()) <= 1e-13);
                    Bytes same = xs;
                    testing::run_on(*find_op(TN_OP_ROPE)->make(p, features), {same.data(), pos.data(), factors.data()},
                                    {same.data()}, 1);
                    CHECK(same == y[0]);
                }
            }
        }
    }
}

TEST_CASE("rope: YaRN keeps fast pairs, interpolates slow ones, and scales both sine and cosine") {
    tn_params_rope params = rope_params(64, TN_ROPE_HALVES);
    params.scale = 0.25f, params.ext_factor = 1, params.beta_fast = 32, params.beta_slow = 1,
    params.original_context = 2048;
    const Problem p = rope_problem(1, 1, 64, params, false);
    Bytes xs(64 * 4, 4);
    for (int i = 0; i < 64; ++i) xs.as<float>()[i] = i < 32 ? 1.0f : 0.0f;
    const Bytes pos = Random::i32({100});
    const double magnitude = 1 + 0.1 * std::log(4.0);
    for (Features features : testing::feature_sets()) {
        const auto y = testing::run(p, {&xs, &pos, nullptr}, features);
        const float *out = y[0].as<float>();
        for (int i : {0, 31}) {
            const double angle = 100 * std::pow(10000.0, -2.0 * i / 64) * (i == 0 ? 1.0 : 0.25);
            CHECK(double(out[i]) == doctest::Approx(magnitude * std::cos(angle)).epsilon(1e-6));
            CHECK(double(out[32 + i]) == doctest::Approx(magnitude * std::sin(angle)).epsilon(1e-6));
        }
    }
}

}  // namespace
}  // namespace tenon::cpu
