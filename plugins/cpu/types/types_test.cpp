// Decoders against the values that another implementation gives, and each faster row against the plain one, bit for
// bit.
#include <bit>

#include "encode.h"
#include "rows/choose.h"
#include "testing/harness.h"
#include "type.h"

namespace tenon::cpu {
namespace {

using testing::Bytes;
using testing::Random;

struct Sample {
    uint32_t type;
    std::vector<uint8_t> bytes;
    std::vector<uint32_t> values;
};

const std::vector<Sample> &samples() {
#define TENON_LIST(...) \
    { __VA_ARGS__ }
#define TENON_DECODE(type, bytes, values) {TN_TYPE_ID_##type, bytes, values},
    static const std::vector<Sample> all = {
#include "types/decode_table.inc"
    };
#undef TENON_DECODE
#undef TENON_LIST
    return all;
}

TEST_CASE("types: every row decodes what the gguf package decodes, at any address") {
    CHECK(samples().size() == 12);
    for (const Sample &sample : samples()) {
        const Type *type = find_type(sample.type);
        REQUIRE(type != nullptr);
        for (const TypeRow &row : type->rows) {
            if ((row.needs & ~detect_isa()) != 0) continue;
            for (size_t misalign : {0u, 1u, 2u, 7u}) {
                Bytes bytes(sample.bytes.size(), misalign);
                std::memcpy(bytes.data(), sample.bytes.data(), sample.bytes.size());
                std::vector<float> got(sample.values.size());
                row.decode(bytes.data(), got.data(), int64_t(got.size()));
                for (size_t i = 0; i < got.size(); ++i) {
                    CAPTURE(type_name(sample.type));
                    CAPTURE(row.name);
                    CAPTURE(i);
                    CHECK(std::bit_cast<uint32_t>(got[i]) == sample.values[i]);
                }
            }
        }
    }
}

TEST_CASE("types: half conversions are exact both ways, over all halves") {
    const EncodeFn encode = choose_encode(TN_TYPE_ID_F16, detect_isa());
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float value = f16_to_f32(uint16_t(bits));
        if (std::isnan(value)) {
            CHECK(std::isnan(f16_to_f32(f32_to_f16(value))));
            continue;
        }
        uint16_t again = 0;
        encode(&value, &again, 1);
        const bool both = f32_to_f16(value) == bits && again == bits;
        if (!both) CHECK_MESSAGE(both, "half ", bits);
        const float brain = bf16_to_f32(uint16_t(bits));
        if (!std::isnan(brain) && f32_to_bf16(brain) != bits) CHECK_MESSAGE(false, "bf16 ", bits);
    }
}

TEST_CASE("types: encoding f16 rounds to nearest even on every row") {
    Random random(3);
    std::vector<float> values(1000);
    for (float &v : values) v = std::ldexp(random.normal(), int(random.whole(-30, 18)));
    values.insert(values.end(), {65519.996f, 65520.0f, -1e30f, 2.98023224e-8f, 2.981e-8f, 1.00048828f, 1.00146484f});
    std::vector<uint16_t> expected(values.size()), got(values.size());
    choose_encode(TN_TYPE_ID_F16, isa_reference)(values.data(), expected.data(), int64_t(values.size()));
    choose_encode(TN_TYPE_ID_F16, detect_isa())(values.data(), got.data(), int64_t(values.size()));
    CHECK(expected == got);
    const std::vector<uint16_t> edges(expected.end() - 7, expected.end());
    CHECK(edges == std::vector<uint16_t>{0x7bff, 0x7c00, 0xfc00, 0, 1, 0x3c00, 0x3c02});
}

TEST_CASE("types: q8_0 survives encoding within half a step") {
    Random random(4);
    std::vector<float> x(256), back(256);
    for (float &v : x) v = random.normal();
    std::vector<uint8_t> bytes(256 / 32 * 34);
    choose_encode(TN_TYPE_ID_Q8_0, isa_reference)(x.data(), bytes.data(), 256);
    choose(*find_type(TN_TYPE_ID_Q8_0), isa_reference).decode(bytes.data(), back.data(), 256);
    for (size_t i = 0; i < x.size(); ++i) CHECK(std::fabs(x[i] - back[i]) < 4.0f / 127 * 0.51f);
}

TEST_CASE("types: quantised activations are the same on every row, and within half a step") {
    Random random(5);
    std::vector<float> x(32 * 9);
    for (size_t i = 0; i < x.size(); ++i) x[i] = i < 32 ? 0.0f : std::ldexp(random.normal(), int(i / 32) * 9 - 50);
    const int64_t n = int64_t(x.size()), blocks = n / 32;
    std::vector<int8_t> q[2];
    std::vector<float> pairs[2], sums[2];
    for (int i = 0; i < 2; ++i) {
        q[i].resize(x.size());
        pairs[i].resize(size_t(blocks) * 2);
        sums[i].resize(size_t(blocks));
        choose_quantize_q8(i == 0 ? isa_reference : detect_isa())(x.data(), n, q[i].data(), pairs[i].data(),
                                                                  sums[i].data());
    }
    CHECK(q[0] == q[1]);
    CHECK(pairs[0] == pairs[1]);
    CHECK(sums[0] == sums[1]);
    for (int64_t i = 0; i < n; ++i) {
        const float scale = pairs[0][size_t(i / 32 * 2)];
        CHECK(std::fabs(double(x[size_t(i)]) - double(scale) * q[0][size_t(i)]) <= double(scale) * 0.5001);
    }
    for (float bad : {NAN, INFINITY, -INFINITY}) {
        x[40] = bad;
        choose_quantize_q8(detect_isa())(x.data(), n, q[0].data(), pairs[0].data(), sums[0].data());
        CHECK(std::isnan(pairs[0][2]));
        CHECK(!std::isnan(pairs[0][4]));
    }
}

}  // namespace
}  // namespace tenon::cpu
