// Plans: states, bounds, fused groups whose memory is planned by the ABI's rule, updates.
#include <cmath>

#include "segment.h"

namespace abi_test {
namespace {

std::vector<float> ramp(size_t n, int seed) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>((static_cast<int>(i) * 7 + seed * 5) % 11 - 4) / 4;
    return v;
}

/// n = rms_norm(x, g); q = n Wq^T, k = n Wk^T; m = q * k; y = m + x2 with x2 = x + x; z = y W2^T + x2.
struct Block {
    static constexpr int64_t kRows = 3, kWidth = 8;
    GraphBuilder g;
    tn_params_norm norm = make<tn_params_norm>(TN_SIZE_PARAMS_NORM);
    tn_value wide(uint32_t flags = 0) { return tensor({kRows, kWidth}, TN_TYPE_ID_F32, 0, flags); }
    tn_value square() { return tensor({kWidth, kWidth}, TN_TYPE_ID_F32, 0, TN_VALUE_WEIGHT); }
    uint32_t x = g.value(wide(TN_VALUE_INPUT)), weight = g.value(tensor({kWidth}, TN_TYPE_ID_F32, 0, TN_VALUE_WEIGHT));
    uint32_t wq = g.value(square()), wk = g.value(square()), w2 = g.value(square());
    uint32_t x2 = g.value(wide()), n = g.value(wide()), q = g.value(wide()), k = g.value(wide()), m = g.value(wide());
    uint32_t y = g.value(wide()), l = g.value(wide()), z = g.value(wide(TN_VALUE_OBSERVED));

    Block() {
        norm.eps = 1e-5f;
        g.node(TN_OP_ADD, {x, x}, {x2});
        g.node(TN_OP_RMS_NORM, {x, weight}, {n}, &norm);
        g.node(TN_OP_LINEAR, {n, wq}, {q});
        g.node(TN_OP_LINEAR, {n, wk}, {k});
        g.node(TN_OP_MUL, {q, k}, {m});
        g.node(TN_OP_ADD, {m, x2}, {y});
        g.node(TN_OP_LINEAR, {y, w2}, {l});
        g.node(TN_OP_ADD, {l, x2}, {z});
    }

    void fill(const Segment &s, uint32_t set = 0) const {
        s.write(x, ramp(kRows * kWidth, static_cast<int>(set) + 1), set);
        s.write(weight, ramp(kWidth, 2), set);
        s.write(wq, ramp(kWidth * kWidth, 3), set);
        s.write(wk, ramp(kWidth * kWidth, 4), set);
        s.write(w2, ramp(kWidth * kWidth, 5), set);
    }
    static std::vector<double> linear(const std::vector<double> &in, int seed) {
        const std::vector<float> w = ramp(kWidth * kWidth, seed);
        std::vector<double> out(in.size());
        for (int64_t r = 0; r < kRows; ++r) {
            for (int64_t o = 0; o < kWidth; ++o) {
                for (int64_t i = 0; i < kWidth; ++i) out[r * kWidth + o] += in[r * kWidth + i] * w[o * kWidth + i];
            }
        }
        return out;
    }
    std::vector<double> expected(uint32_t set = 0) const {
        const std::vector<float> in = ramp(kRows * kWidth, static_cast<int>(set) + 1), scale = ramp(kWidth, 2);
        std::vector<double> normed(in.size());
        for (int64_t r = 0; r < kRows; ++r) {
            double sum = 0;
            for (int64_t i = 0; i < kWidth; ++i) sum += double{in[r * kWidth + i]} * in[r * kWidth + i];
            for (int64_t i = 0; i < kWidth; ++i) {
                normed[r * kWidth + i] = in[r * kWidth + i] / std::sqrt(sum / kWidth + double{norm.eps}) * scale[i];
            }
        }
        const std::vector<double> a = linear(normed, 3), b = linear(normed, 4);
        std::vector<double> sum(in.size());
        for (size_t i = 0; i < sum.size(); ++i) sum[i] = a[i] * b[i] + 2 * double{in[i]};
        std::vector<double> out = linear(sum, 5);
        for (size_t i = 0; i < out.size(); ++i) out[i] += 2 * double{in[i]};
        return out;
    }
    void check(const Segment &s, uint32_t set = 0) const {
        const std::vector<float> got = s.read(z, kRows * kWidth, set);
        const std::vector<double> want = expected(set);
        for (size_t i = 0; i < got.size(); ++i) CHECK(double{got[i]} == doctest::Approx(want[i]).epsilon(1e-5));
    }
};

struct Fixture {
    Host host;
    Plugin plugin{mock_library(), host};
    OpenDevice plain{plugin, host.adapters.at("mock:0"), {{"composites", "1"}}};
    OpenDevice fusing{plugin, host.adapters.at("mock:1"), {{"composites", "1"}, {"fuse", "1"}}};
};

void run_once(const Segment &s, tn_stream stream, uint32_t set = 0) {
    REQUIRE(s.run(stream, set) == TN_OK);
    REQUIRE_MESSAGE(s.p.stream->synchronize(stream, TN_FOREVER) == TN_OK, last_error());
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a plan without fusing: a group a node, and the right numbers") {
    Block block;
    Segment s(plain, block.g);
    CHECK(s.groups.size() == block.g.nodes.size());
    CHECK(s.unstored.empty());
    CHECK(s.pairs.empty());
    s.ready();
    block.fill(s);
    tn_stream stream = plain.stream();
    run_once(s, stream);
    block.check(s);
    plain.p.stream->destroy(stream);
}

TEST_CASE_FIXTURE(Fixture, "fused groups: early and late ones, unstored values, scratch, offers taken") {
    Block block;
    Segment s(fusing, block.g);
    CHECK(s.groups.size() == 4);  // x2; norm + q + k; mul + add; linear + add
    CHECK(s.node_groups[block.n - block.x2] == s.node_groups[2]);
    CHECK(s.unstored.size() == 3);
    for (uint32_t v : {block.n, block.m, block.l})
        CHECK(std::find(s.unstored.begin(), s.unstored.end(), v) != s.unstored.end());
    CHECK(std::any_of(s.groups.begin(), s.groups.end(), [](const tn_group &g) { return g.scratch_bytes > 0; }));
    CHECK(!s.pairs.empty());
    Block other;
    Segment apart(plain, other.g);
    CHECK(s.groups.size() < apart.groups.size());
    s.ready(2);
    block.fill(s, 0), block.fill(s, 1);
    tn_stream stream = fusing.stream();
    run_once(s, stream, 0), run_once(s, stream, 1);
    block.check(s, 0), block.check(s, 1);
    fusing.p.stream->destroy(stream);
}

TEST_CASE_FIXTURE(Fixture, "an operand that dies is reused in place where that was offered") {
    GraphBuilder g;
    const uint32_t x = g.value(tensor({4, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT));
    const uint32_t a = g.value(tensor({4, 4})), b = g.value(tensor({4, 4}));
    const uint32_t y = g.value(tensor({4, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_OBSERVED));
    g.node(TN_OP_SQR, {x}, {a});
    g.node(TN_OP_NEG, {a}, {b});
    g.node(TN_OP_ADD, {b, b}, {y});
    Segment s(fusing, g);
    CHECK(s.taken_offers == 1);
    CHECK(s.places[a].offset == s.places[b].offset);
    s.ready();
    s.write(x, ramp(16, 1));
    tn_stream stream = fusing.stream();
    run_once(s, stream);
    for (size_t i = 0; i < 16; ++i) CHECK(s.read(y, 16)[i] == -2 * ramp(16, 1)[i] * ramp(16, 1)[i]);
    fusing.p.stream->destroy(stream);
}

TEST_CASE_FIXTURE(Fixture, "a broadcast operand is never offered") {
    GraphBuilder g;
    tn_value row = tensor({4, 4});
    row.stride_bytes[0] = 0;
    const uint32_t x = g.value(tensor({4}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT)), a = g.value(tensor({4}));
    row.view_of = a;
    const uint32_t wide = g.value(row), y = g.value(tensor({4, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_OBSERVED));
    g.node(TN_OP_SQR, {x}, {a});
    g.node(TN_OP_ADD, {wide, wide}, {y});
    Segment s(fusing, g);
    CHECK(std::none_of(s.pairs.begin(), s.pairs.end(), [&](const tn_in_place &p) { return p.output == y; }));
}

TEST_CASE_FIXTURE(Fixture, "an observed or viewed value is never fused away") {
    Block block;
    block.g.values[block.m].flags = TN_VALUE_OBSERVED;
    tn_value view = block.wide();
    view.view_of = block.l;
    block.g.value(view);
    Segment s(fusing, block.g);
    CHECK(s.unstored == std::vector<uint32_t>{block.n});
    s.ready();
    block.fill(s);
    tn_stream stream = fusing.stream();
    run_once(s, stream);
    block.check(s);
    fusing.p.stream->destroy(stream);
}

TEST_CASE_FIXTURE(Fixture, "a read that a later node overwrites isn't moved behind it") {
    GraphBuilder g;
    const uint32_t cache = g.value(tensor({4, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_STATE));
    const uint32_t rows = g.value(tensor({4, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT));
    const uint32_t ids = g.value(tensor({4}, TN_TYPE_ID_I32, 0, TN_VALUE_INPUT)), mid = g.value(tensor({4, 4}));
    tn_value after = tensor({4, 4});
    after.view_of = cache;
    const uint32_t written = g.value(after), y = g.value(tensor({4, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_OBSERVED));
    g.node(TN_OP_MUL, {cache, rows}, {mid});
    g.node(TN_OP_SCATTER_ROWS, {cache, rows, ids}, {written});
    g.node(TN_OP_ADD, {mid, written}, {y});
    Segment s(fusing, g);
    CHECK(s.unstored.empty());
    s.ready();
    s.write(cache, ramp(16, 1)), s.write(rows, ramp(16, 2));
    const int32_t order[4] = {3, 2, -1, 3};  // row 3: the last wins; row 2 of rows is dropped
    const tn_value at = s.in_buffer(ids);
    REQUIRE(s.p.buffer->set(s.buffer(), &at, 0, order, 16) == TN_OK);
    tn_stream stream = fusing.stream();
    run_once(s, stream);
    const std::vector<float> got = s.read(y, 16), c = ramp(16, 1), r = ramp(16, 2);
    for (size_t i = 0; i < 4; ++i) {
        CHECK(got[i] == c[i] * r[i] + c[i]);
        CHECK(got[8 + i] == c[8 + i] * r[8 + i] + r[4 + i]);
        CHECK(got[12 + i] == c[12 + i] * r[12 + i] + r[12 + i]);
    }
    fusing.p.stream->destroy(stream);
}

TEST_CASE_FIXTURE(Fixture, "the life of a plan: place once, bind after it, run what is bound") {
    Block block;
    Segment s(plain, block.g);
    tn_stream stream = plain.stream(), foreign = fusing.stream();
    CHECK(s.bind(0) == TN_INVALID_STATE);
    CHECK(s.run(stream) == TN_INVALID_STATE);
    s.places[block.q].binding = 2;
    CHECK(s.place() == TN_INVALID_ARGUMENT);
    s.places[block.q].binding = TN_NONE;
    CHECK(s.place() == TN_INVALID_ARGUMENT);
    s.places[block.q].binding = 1;
    CHECK(s.place() == TN_OK);
    CHECK(s.place() == TN_INVALID_STATE);
    CHECK(s.bind(0, 300) == TN_INVALID_ARGUMENT);  // z ends beyond the binding
    CHECK(s.bind(0) == TN_OK);
    CHECK(s.run(stream, 1) == TN_INVALID_STATE);
    CHECK(s.run(stream, 4000000000u) == TN_INVALID_STATE);
    CHECK(s.run(foreign) == TN_INVALID_ARGUMENT);
    block.fill(s);
    CHECK(s.bind(0) == TN_OK);  // again, the same buffers
    run_once(s, stream);
    block.check(s);
    plain.p.stream->destroy(stream);
    fusing.p.stream->destroy(foreign);
}

TEST_CASE_FIXTURE(Fixture, "update takes new params for the same graph, and nothing else") {
    Block block;
    Segment s(fusing, block.g);
    s.ready();
    block.fill(s);
    tn_stream stream = fusing.stream();
    run_once(s, stream);
    block.check(s);
    block.norm.eps = 0.5f;
    CHECK(s.p.plan->update(s.plan, block.g.get()) == TN_OK);
    run_once(s, stream);
    block.check(s);
    block.g.values[block.q].flags = TN_VALUE_OBSERVED;
    CHECK(s.p.plan->update(s.plan, block.g.get()) == TN_INVALID_ARGUMENT);
    fusing.p.stream->destroy(stream);
}

TEST_CASE_FIXTURE(Fixture, "an output that must alias does") {
    GraphBuilder g;
    const uint32_t cache = g.value(tensor({4, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_STATE));
    const uint32_t rows = g.value(tensor({1, 4}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT));
    const uint32_t ids = g.value(tensor({1}, TN_TYPE_ID_I32, 0, TN_VALUE_INPUT)), out = g.value(tensor({4, 4}));
    g.node(TN_OP_SCATTER_ROWS, {cache, rows, ids}, {out});
    tn_plan plan = nullptr;
    CHECK(plain.p.plan->prepare(plain.handle, g.get(), &plan) == TN_INVALID_ARGUMENT);
    CHECK(plan == nullptr);
    g.values[out].view_of = cache;
    CHECK(plain.p.plan->prepare(plain.handle, g.get(), &plan) == TN_OK);
    plain.p.plan->destroy(plan);
}

}  // namespace abi_test
