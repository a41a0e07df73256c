// attention against the formula in float64, over head counts, cache types, block tables, windows, paddings.
#include <algorithm>

#include "testing/harness.h"
#include "type.h"
#include "visible.h"

namespace tenon::cpu {
namespace {

using testing::Bytes;
using testing::Random;

struct Case {
    int64_t tokens, heads, kv_heads, d, dv;
    uint32_t k_type, v_type;
    int64_t sequences, blocks, block_rows;
    uint32_t window = 0;
    float softcap = 0;
    bool sinks = false;
    bool ragged = false;  // several sequences, padding, a block outside the cache
};

struct Data {
    Problem p;
    std::vector<Bytes> bytes;
    std::vector<const Bytes *> inputs;
};

Data make(const Case &c, Random &random) {
    Data data;
    const int64_t n = c.sequences * c.blocks * c.block_rows, capacity = c.blocks * c.block_rows;
    const auto i32 = [](std::initializer_list<int64_t> shape) { return Operand::dense(TN_TYPE_ID_I32, shape); };
    Problem &p = data.p;
    p.op = TN_OP_ATTENTION;
    p.in = {Operand::dense(TN_TYPE_ID_F32, {c.tokens, c.heads, c.d}),
            Operand::dense(c.k_type, {n, c.kv_heads, c.d}),
            Operand::dense(c.v_type, {n, c.kv_heads, c.dv}),
            i32({c.tokens}),
            i32({c.tokens}),
            i32({c.sequences, c.blocks}),
            i32({c.sequences}),
            i32({c.sequences}),
            c.sinks ? Operand::dense(TN_TYPE_ID_F32, {c.heads}) : Operand()};
    p.out = {Operand::dense(TN_TYPE_ID_F32, {c.tokens, c.heads, c.dv})};
    auto params = testing::params<tn_params_attention>();
    params.scale = 1 / std::sqrt(float(c.d));
    params.softcap = c.softcap;
    params.window = c.window;
    params.block_rows = uint32_t(c.block_rows);
    p.set(params);
    data.bytes.push_back(random.f32(p.in[0], 2));
    for (size_t i : {1u, 2u}) {
        Bytes cache = random.weights(p.in[i], 4);
        if (c.k_type != TN_TYPE_ID_Q8_0) {
            for (int64_t e = 0; e < p.in[i].elements(); ++e) {
                const float value = random.normal();
                const uint16_t half = p.in[i].type == TN_TYPE_ID_F16 ? f32_to_f16(value) : f32_to_bf16(value);
                if (p.in[i].type == TN_TYPE_ID_F32) {
                    cache.as<float>()[e] = value;
                } else {
                    cache.as<uint16_t>()[e] = half;
                }
            }
        }
        data.bytes.push_back(std::move(cache));
    }
    for (size_t i = 3; i < 8; ++i) data.bytes.emplace_back(size_t(p.in[i].elements()) * 4, 4);
    auto *q_pos = data.bytes[3].as<int32_t>(), *seq = data.bytes[4].as<int32_t>(), *table = data.bytes[5].as<int32_t>();
    auto *start = data.bytes[6].as<int32_t>(), *length = data.bytes[7].as<int32_t>();
    for (int64_t i = 0; i < c.sequences * c.blocks; ++i) table[i] = int32_t(c.sequences * c.blocks - 1 - i);
    if (c.ragged) table[0] = 1 << 20;
    for (int64_t s = 0; s < c.sequences; ++s) {
        start[s] = c.ragged ? int32_t(random.whole(0, capacity)) : 0;
        length[s] = int32_t(c.ragged ? random.whole(0, capacity) : capacity - 1);
    }
    for (int64_t t = 0; t < c.tokens; ++t) {
        seq[t] = c.ragged ? int32_t(random.whole(-1, c.sequences - 1)) : 0;
        const int64_t s = std::max(0, seq[t]);
        q_pos[t] = c.ragged ? start[s] + int32_t(random.whole(-1, capacity)) : int32_t(capacity - 1 - c.tokens + t);
    }
    if (c.sinks) data.bytes.push_back(random.f32(p.in[8]));
    for (const Bytes &b : data.bytes) data.inputs.push_back(&b);
    if (!c.sinks) data.inputs.push_back(nullptr);
    return data;
}

std::vector<double> oracle(const Data &data) {
    const Problem &p = data.p;
    const auto &params = p.as<tn_params_attention>();
    const int64_t tokens = p.in[0].shape[0], heads = p.in[0].shape[1], d = p.in[0].shape[2],
                  kv_heads = p.in[1].shape[1];
    const int64_t dv = p.in[2].shape[2], n = p.in[1].shape[0], blocks = p.in[5].shape[1];
    const int64_t block_rows = params.block_rows, capacity = blocks * block_rows;
    const auto q = testing::decoded(p.in[0], data.bytes[0].data()), k = testing::decoded(p.in[1], data.bytes[1].data()),
               v = testing::decoded(p.in[2], data.bytes[2].data());
    const auto number = [&](size_t i, int64_t j) { return int64_t(data.bytes[i].as<int32_t>()[j]); };
    std::vector<double> y(size_t(tokens * heads * dv));
    for (int64_t t = 0; t < tokens; ++t) {
        const int64_t s = number(4, t);
        if (s < 0) continue;
        for (int64_t h = 0; h < heads; ++h) {
            const int64_t g = h / (heads / kv_heads);
            std::vector<double> scores;
            std::vector<int64_t> rows;
            const int64_t first = number(6, s);
            for (int64_t pos = first; pos < first + std::min(number(7, s), capacity) && pos <= number(3, t); ++pos) {
                if (params.window > 0 && pos <= number(3, t) - int64_t(params.window)) continue;
                const int64_t slot = pos % capacity;
                int64_t row = number(5, s * blocks + slot / block_rows) * block_rows + slot % block_rows;
                if (row >= n) row = -1;
                double score = 0;
                for (int64_t i = 0; i < d && row >= 0; ++i) {
                    score += q[size_t((t * heads + h) * d + i)] * k[size_t((row * kv_heads + g) * d + i)];
                }
                score *= double(params.scale);
                if (params.softcap > 0) score = double(params.softcap) * std::tanh(score / double(params.softcap));
                scores.push_back(score);
                rows.push_back(row);
            }
            if (scores.empty()) continue;
            double most = *std::max_element(scores.begin(), scores.end()), sum = 0;
            for (double x : scores) sum += std::exp(x - most);
            if (p.input(8) != nullptr) sum += std::exp(double(data.bytes[8].as<float>()[h]) - most);
            for (size_t i = 0; i < scores.size(); ++i) {
                for (int64_t j = 0; j < dv && rows[i] >= 0; ++j) {
                    y[size_t((t * heads + h) * dv + j)] +=
                        std::exp(scores[i] - most) / sum * v[size_t((rows[i] * kv_heads + g) * dv + j)];
                }
            }
        }
    }
    return y;
}

constexpr uint32_t f32 = TN_TYPE_ID_F32, f16 = TN_TYPE_ID_F16, bf16 = TN_TYPE_ID_BF16, q8 = TN_TYPE_ID_Q8_0;

TEST_CASE("attention: agrees with float64, the same bits on any number of threads") {
    const Case cases[] = {
        {1, 9, 3, 64, 64, f16, f16, 1, 1, 512},
        {1, 9, 3, 64, 64, f32, f32, 1, 4, 96},
        {50, 9, 3, 64, 64, f16, f16, 1, 1, 200},
        {200, 4, 1, 32, 32, f32, f16, 1, 8, 32},
        {3, 1, 1, 1, 1, f32, f32, 1, 1, 10},
        {5, 6, 2, 33, 17, f32, f32, 1, 3, 7, 0, 0, true},
        {17, 80, 2, 24, 40, bf16, bf16, 1, 1, 90, 13, 5.0f},
        {2, 4, 4, 256, 512, f16, f32, 1, 1, 130, 0, 30.0f, true},
        {40, 8, 2, 64, 64, q8, q8, 3, 4, 32, 0, 0, false, true},
        {33, 4, 2, 16, 16, f16, f16, 4, 5, 16, 20, 0, true, true},
        {1, 2, 1, 1024, 1024, f32, f32, 1, 1, 70},
        {4, 4, 2, 16, 16, f32, f32, 1, 1, 2},
        {0, 4, 2, 16, 16, f32, f32, 1, 1, 16},
    };
    Random random(21);
    for (const Case &c : cases) {
        const Data data = make(c, random);
        const std::vector<double> expected = oracle(data);
        for (Features features : testing::feature_sets()) {
            CAPTURE(&c - cases);
            CAPTURE(features);
            const auto y = testing::run(data.p, data.inputs, features, 1);
            CHECK(testing::nmse(expected, y[0].as<float>()) <= 1e-10);
            for (unsigned threads : {2u, 3u, 5u}) CHECK(testing::run(data.p, data.inputs, features, threads) == y);
        }
    }
}

TEST_CASE("attention: padding tokens and tokens that see nothing give zeros, sinks or not") {
    Random random(22);
    for (bool sinks : {false, true}) {
        Data data = make({4, 2, 1, 8, 8, f32, f32, 1, 1, 16, 0, 0, sinks}, random);
        data.bytes[4].as<int32_t>()[1] = -1;
        data.bytes[4].as<int32_t>()[2] = 5;   // no such sequence
        data.bytes[3].as<int32_t>()[3] = -1;  // before everything
        for (Features features : testing::feature_sets()) {
            const auto y = testing::run(data.p, data.inputs, features, 2);
            for (int i = 0; i < 4 * 16; ++i) CHECK((y[0].as<float>()[i] == 0) == (i >= 16));
        }
    }
}

TEST_CASE("attention: a NaN in a key reaches the tokens that see it, no other") {
    Random random(23);
    for (int64_t tokens : {6, 64}) {
        Data data = make({tokens, 2, 1, 8, 8, f32, f32, 1, 1, 100}, random);
        data.bytes[1].as<float>()[(99 - 1 - 3) * 8] = NAN;  // position 95 of a causal block that ends at 98
        for (Features features : testing::feature_sets()) {
            const auto y = testing::run(data.p, data.inputs, features, 2);
            for (int64_t t = 0; t < tokens; ++t) {
                CHECK(std::isnan(y[0].as<float>()[t * 16]) == (data.bytes[3].as<int32_t>()[t] >= 95));
            }
        }
    }
}

TEST_CASE("attention_mask: the rule as ops.h states it") {
    Problem p;
    p.op = TN_OP_ATTENTION_MASK;
    for (int64_t size : {5, 5, 2, 2}) p.in.push_back(Operand::dense(TN_TYPE_ID_I32, {size}));
    p.out = {Operand::dense(TN_TYPE_ID_F32, {5, 8})};
    auto params = testing::params<tn_params_attention_mask>();
    params.capacity = 4;
    params.window = 2;
    p.set(params);
    const Bytes q_pos = Random::i32({0, 6, 7, 3, 100}), seq = Random::i32({0, 1, 1, -1, 1}),
                start = Random::i32({0, 5}), length = Random::i32({4, 3});
    const auto y = testing::run(p, {&q_pos, &seq, &start, &length}, isa_reference, 2);
    // Sequence 1 holds positions 5, 6, 7 in slots 1, 2, 3.
    const std::vector<std::vector<int>> seen = {{0}, {5, 6}, {6, 7}, {}, {}};
    for (int t = 0; t < 5; ++t) {
        for (int c = 0; c < 8; ++c) {
            const bool sees = std::find(seen[size_t(t)].begin(), seen[size_t(t)].end(), c) != seen[size_t(t)].end();
            CHECK(y[0].as<float>()[t * 8 + c] == (sees ? 0.0f : -INFINITY));
        }
    }
}

}  // namespace
}  // namespace tenon::cpu
