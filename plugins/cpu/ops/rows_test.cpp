// Gathers, scatters, copies, concatenation, reductions, picks, matmul, routing.
#include <algorithm>
#include <numeric>

#include "testing/harness.h"
#include "type.h"

namespace tenon::cpu {
namespace {

using testing::Bytes;
using testing::Random;

Operand f32(std::initializer_list<int64_t> shape) {
    return Operand::dense(TN_TYPE_ID_F32, shape);
}
Operand i32(std::initializer_list<int64_t> shape) {
    return Operand::dense(TN_TYPE_ID_I32, shape);
}

Problem make(uint32_t op, std::vector<Operand> in, Operand out) {
    Problem p;
    p.op = op;
    p.in = std::move(in);
    p.out = {out};
    return p;
}

TEST_CASE("gather_rows: decodes rows of every type; an id outside gives zeros; ids of both widths") {
    Random random(41);
    for (uint32_t type : testing::weight_types()) {
        const int64_t width = std::max<int64_t>(64, block_of(type).elements);
        const Operand table = Operand::dense(type, {6, width});
        const Bytes bytes = random.weights(table, type == TN_TYPE_ID_F32 ? 4 : 2);
        const std::vector<double> all = testing::decoded(table, bytes.data());
        const std::vector<int64_t> wanted = {5, 0, -1, 3, 6, 3};
        for (uint32_t id_type : {TN_TYPE_ID_I32, TN_TYPE_ID_I64}) {
            Bytes ids(6 * size_t(block_of(id_type).bytes), 8);
            for (size_t i = 0; i < 6; ++i) {
                if (id_type == TN_TYPE_ID_I32) ids.as<int32_t>()[i] = int32_t(wanted[i]);
                if (id_type == TN_TYPE_ID_I64) ids.as<int64_t>()[i] = wanted[i];
            }
            for (Features features : testing::feature_sets()) {
                const auto y =
                    testing::run(make(TN_OP_GATHER_ROWS, {table, Operand::dense(id_type, {2, 3})}, f32({2, 3, width})),
                                 {&bytes, &ids}, features, 2);
                for (size_t i = 0; i < size_t(6 * width); ++i) {
                    const int64_t id = wanted[i / size_t(width)];
                    const bool inside = id >= 0 && id < 6;
                    CHECK(double(y[0].as<float>()[i]) == (inside ? all[size_t(id * width) + i % size_t(width)] : 0.0));
                }
            }
        }
    }
}

TEST_CASE("gather_last: picks within each row") {
    const Bytes ids = Random::i32({2, 0, 9, 1, 1, -1});
    Bytes xs(24, 4);
    std::iota(xs.as<float>(), xs.as<float>() + 6, 10.0f);
    const auto y =
        testing::run(make(TN_OP_GATHER_LAST, {f32({2, 3}), i32({2, 3})}, f32({2, 3})), {&xs, &ids}, isa_reference);
    const float expected[] = {12, 10, 0, 14, 14, 0};
    CHECK(std::memcmp(y[0].data(), expected, sizeof expected) == 0);
}

TEST_CASE("scatter_rows and kv_append: only the named rows change; the last of equal ids wins; -1 drops") {
    Random random(42);
    for (uint32_t type : {TN_TYPE_ID_F32, TN_TYPE_ID_F16, TN_TYPE_ID_BF16, TN_TYPE_ID_Q8_0}) {
        for (uint32_t op : {TN_OP_SCATTER_ROWS, TN_OP_KV_APPEND}) {
            const bool flat = op == TN_OP_SCATTER_ROWS;
            Operand table = flat ? Operand::dense(type, {7, 64}) : Operand::dense(type, {7, 2, 32});
            const Operand rows = flat ? f32({5, 64}) : f32({5, 2, 32});
            if (!flat) table.stride[0] *= 3;  // a layer's part of a larger cache
            const Bytes before = random.weights(table, 4), xs = random.f32(rows), ids = Random::i32({3, -1, 6, 3, 7});
            Problem p = make(op, {table, rows, i32({5})}, table);
            REQUIRE(find_op(op)->refuse(p) == "");
            for (Features features : testing::feature_sets()) {
                Bytes first;
                for (unsigned threads : {1u, 2u, 3u}) {
                    Bytes cache = before;
                    testing::run_on(*find_op(op)->make(p, features), {cache.data(), xs.data(), ids.data()},
                                    {cache.data()}, threads);
                    if (threads == 1) first = cache;
                    CHECK(cache == first);
                }
                const auto was = testing::decoded(table, before.data()), is = testing::decoded(table, first.data());
                for (size_t i = 0; i < 7 * 64; ++i) {
                    const size_t row = i / 64;
                    if (row != 3 && row != 6) {
                        const bool same = is[i] == was[i] || (std::isnan(is[i]) && std::isnan(was[i]));
                        CHECK(same);
                        continue;
                    }
                    const double wanted = double(xs.as<float>()[(row == 3 ? 3 : 2) * 64 + i % 64]);
                    CHECK(std::fabs(is[i] - wanted) <= (type == TN_TYPE_ID_F32    ? 0
                                                        : type == TN_TYPE_ID_Q8_0 ? 0.02
                                                                                  : std::fabs(wanted) / 256));
                }
            }
        }
    }
}

TEST_CASE("copy: strides to contiguous, and conversions of every pair") {
    Random random(43);
    Operand x = f32({3, 5});
    x.stride = {4, 12};  // transposed
    const Bytes xs = random.f32(x, 50);
    for (Features features : testing::feature_sets()) {
        const auto same = testing::run(make(TN_OP_COPY, {x}, f32({3, 5})), {&xs}, features, 2);
        const auto half = testing::run(make(TN_OP_COPY, {x}, Operand::dense(TN_TYPE_ID_F16, {3, 5})), {&xs}, features);
        const auto whole = testing::run(make(TN_OP_COPY, {x}, Operand::dense(TN_TYPE_ID_I64, {3, 5})), {&xs}, features);
        const auto back = testing::run(make(TN_OP_COPY, {Operand::dense(TN_TYPE_ID_I64, {3, 5})}, i32({3, 5})),
                                       {&whole[0]}, features);
        for (int64_t i = 0; i < 15; ++i) {
            const double value = testing::element(x, xs.data(), i);
            CHECK(double(same[0].as<float>()[i]) == value);
            CHECK(half[0].as<uint16_t>()[i] == f32_to_f16(float(value)));
            CHECK(whole[0].as<int64_t>()[i] == int64_t(value));
            CHECK(back[0].as<int32_t>()[i] == int32_t(value));
        }
    }
    const Operand q = Operand::dense(TN_TYPE_ID_Q4_1, {4, 320});
    const Bytes qs = random.weights(q, 2);
    const auto y = testing::run(make(TN_OP_COPY, {q}, f32({4, 320})), {&qs}, detect_isa(), 3);
    CHECK(testing::nmse(testing::decoded(q, qs.data()), y[0].as<float>()) == 0);
    CHECK(testing::run(make(TN_OP_COPY, {q}, q), {&qs}, detect_isa(), 3)[0] == qs);
}

TEST_CASE("copy: numbers that an integer can't hold saturate, NaN gives 0") {
    Bytes xs(16, 4);
    const float values[] = {1e30f, -1e30f, NAN, -2.9f};
    std::memcpy(xs.data(), values, 16);
    const auto y = testing::run(make(TN_OP_COPY, {f32({4})}, i32({4})), {&xs}, isa_reference);
    CHECK(y[0].as<int32_t>()[0] == INT32_MAX);
    CHECK(y[0].as<int32_t>()[1] == INT32_MIN);
    CHECK(y[0].as<int32_t>()[2] == 0);
    CHECK(y[0].as<int32_t>()[3] == -2);
}

TEST_CASE("concat: along each axis") {
    for (uint32_t axis : {0u, 1u, 2u}) {
        Operand a = i32({2, 2, 2}), b = i32({2, 2, 2}), y = i32({2, 2, 2});
        b.shape[axis] = 3;
        b = Operand::dense(TN_TYPE_ID_I32, {b.shape[0], b.shape[1], b.shape[2]});
        y.shape[axis] = 5;
        y = Operand::dense(TN_TYPE_ID_I32, {y.shape[0], y.shape[1], y.shape[2]});
        Problem p = make(TN_OP_CONCAT, {a, b}, y);
        auto params = testing::params<tn_params_concat>();
        params.axis = axis;
        p.set(params);
        Bytes as(32, 4), bs(48, 4);
        std::iota(as.as<int32_t>(), as.as<int32_t>() + 8, 0);
        std::iota(bs.as<int32_t>(), bs.as<int32_t>() + 12, 100);
        const auto out = testing::run(p, {&as, &bs}, isa_reference, 2);
        for (int64_t i = 0; i < 20; ++i) {
            int64_t at[3] = {i / (y.shape[1] * y.shape[2]), i / y.shape[2] % y.shape[1], i % y.shape[2]};
            const bool second = at[axis] >= 2;
            if (second) at[axis] -= 2;
            const Operand &from = second ? b : a;
            const int64_t index = (at[0] * from.shape[1] + at[1]) * from.shape[2] + at[2];
            CHECK(out[0].as<int32_t>()[i] == (second ? 100 : 0) + index);
        }
    }
}

TEST_CASE("reductions: against float64; an empty row; NaN") {
    Random random(44);
    for (int64_t n : {1, 3, 4, 1001}) {
        const Operand x = f32({5, n});
        const Bytes xs = random.f32(x);
        const auto sum = testing::run(make(TN_OP_SUM, {x}, f32({5, 1})), {&xs}, isa_reference, 2);
        const auto mean = testing::run(make(TN_OP_MEAN, {x}, f32({5, 1})), {&xs}, isa_reference);
        const auto most = testing::run(make(TN_OP_MAX_REDUCE, {x}, f32({5, 1})), {&xs}, isa_reference);
        const auto arg = testing::run(make(TN_OP_ARGMAX, {x}, i32({5, 1})), {&xs}, isa_reference);
        for (int64_t r = 0; r < 5; ++r) {
            const float *row = xs.as<float>() + r * n;
            const double expected = std::accumulate(row, row + n, 0.0);
            CHECK(double(sum[0].as<float>()[r]) == doctest::Approx(expected).epsilon(1e-6));
            CHECK(double(mean[0].as<float>()[r]) == doctest::Approx(expected / double(n)).epsilon(1e-6));
            CHECK(most[0].as<float>()[r] == *std::max_element(row, row + n));
            CHECK(arg[0].as<int32_t>()[r] == std::max_element(row, row + n) - row);
        }
    }
    Bytes nan(12, 4);
    nan.as<float>()[1] = NAN;
    CHECK(std::isnan(
        testing::run(make(TN_OP_MAX_REDUCE, {f32({1, 3})}, f32({1, 1})), {&nan}, isa_reference)[0].as<float>()[0]));
    const Bytes nothing(0, 4);
    CHECK(testing::run(make(TN_OP_SUM, {f32({2, 0})}, f32({2, 1})), {&nothing}, isa_reference)[0].as<float>()[1] == 0);
}

TEST_CASE("top_k: falling order, ties to the lower index, NaN last") {
    Random random(45);
    for (int64_t n : {1, 10, 500}) {
        for (int64_t k : {int64_t(1), n / 2, n}) {
            Bytes xs(size_t(n) * 4, 4);
            for (int64_t i = 0; i < n; ++i) xs.as<float>()[i] = i % 17 == 5 ? NAN : float(random.whole(0, 20));
            std::vector<int32_t> order(static_cast<size_t>(n));
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
                const float x = xs.as<float>()[a], y = xs.as<float>()[b];
                return std::isnan(y) ? !std::isnan(x) : x > y;
            });
            Problem p = make(TN_OP_TOP_K, {f32({1, n})}, i32({1, k}));
            auto params = testing::params<tn_params_top_k>();
            params.k = uint32_t(k);
            p.set(params);
            const auto y = testing::run(p, {&xs}, isa_reference);
            CHECK(std::equal(order.begin(), order.begin() + k, y[0].as<int32_t>()));
        }
    }
}

TEST_CASE("matmul: batches broadcast by whole multiples, rows of any stride") {
    Random random(46);
    struct Shapes {
        Operand a, b, y;
    };
    Operand transposed = f32({2, 9, 300});
    transposed.stride = {4 * 9 * 300, 4, 4 * 9};
    const Shapes shapes[] = {{f32({3, 5}), f32({4, 5}), f32({3, 4})},
                             {f32({6, 33, 70}), f32({2, 65, 70}), f32({6, 33, 65})},
                             {f32({2, 4, 1, 300}), transposed, f32({2, 4, 1, 9})},
                             {f32({1, 1, 1}), f32({1, 1}), f32({1, 1, 1})},
                             {f32({2, 3, 0}), f32({2, 4, 0}), f32({2, 3, 4})}};
    for (const Shapes &s : shapes) {
        const Bytes as = random.f32(s.a), bs = random.f32(s.b);
        const int64_t m = s.y.shape[s.y.rank - 2], n = s.y.last(), k = s.a.last(), batches = s.y.rows() / m;
        const int64_t b_batches = std::max<int64_t>(1, s.b.rows() / n),
                      last_batch = s.y.rank == 4 ? s.y.shape[1] : batches;
        std::vector<double> expected;
        for (int64_t i = 0; i < batches * m * n; ++i) {
            const int64_t batch = i / (m * n), row = i / n % m, column = i % n;
            const int64_t b_batch = batch % last_batch / (last_batch / b_batches);
            double sum = 0;
            for (int64_t j = 0; j < k; ++j) {
                sum += testing::element(s.a, as.data(), (batch * m + row) * k + j) *
                       testing::element(s.b, bs.data(), (b_batch * n + column) * k + j);
            }
            expected.push_back(sum);
        }
        for (Features features : testing::feature_sets()) {
            const auto y = testing::run(make(TN_OP_MATMUL, {s.a, s.b}, s.y), {&as, &bs}, features, 1);
            CHECK(testing::nmse(expected, y[0].as<float>()) <= 1e-11);
            CHECK(testing::run(make(TN_OP_MATMUL, {s.a, s.b}, s.y), {&as, &bs}, features, 3) == y);
        }
    }
}

TEST_CASE("route: the k largest and their scores") {
    Problem p;
    p.op = TN_OP_ROUTE;
    p.in = {f32({1, 4})};
    p.out = {i32({1, 2}), f32({1, 2})};
    Bytes xs(16, 4);
    const float logits[] = {1, 3, 2, 3};
    std::memcpy(xs.data(), logits, 16);
    for (uint32_t normalise : {0u, 1u}) {
        auto params = testing::params<tn_params_route>();
        params.k = 2, params.normalise = normalise;
        p.set(params);
        const auto y = testing::run(p, {&xs}, isa_reference);
        CHECK(y[0].as<int32_t>()[0] == 1);
        CHECK(y[0].as<int32_t>()[1] == 3);
        const double sum = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
        CHECK(double(y[1].as<float>()[1]) == doctest::Approx(normalise != 0 ? 0.5 : std::exp(3.0) / sum));
    }
}

}  // namespace
}  // namespace tenon::cpu
