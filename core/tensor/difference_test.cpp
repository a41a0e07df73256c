#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tensor/difference.h"

using namespace tenon;

namespace {

constexpr double k_infinity = std::numeric_limits<double>::infinity();
constexpr float k_nan = std::numeric_limits<float>::quiet_NaN();

template <class T>
Difference of(DType type, const std::vector<T> &got, const std::vector<T> &expected) {
    auto made = difference(type, std::as_bytes(std::span(got)), std::as_bytes(std::span(expected)));
    REQUIRE_MESSAGE(made.ok(), made.status().message());
    return *made;
}

}  // namespace

TEST_CASE("difference: floats by the energy of the error") {
    const Difference d = of<float>(DType::f32, {1, 2, 3.5f, -4}, {1, 2, 3, -4});
    CHECK(d.nmse == 0.25 / 30);
    CHECK(d.elements == 4);
    CHECK(d.unequal == 1);
    CHECK(d.worst == 2);
    CHECK(d.got == 3.5);
    CHECK(d.expected == 3);
    CHECK(of<float>(DType::f32, {1, 2}, {1, 2}).nmse == 0);
    CHECK(of<float>(DType::f32, {}, {}).nmse == 0);
    CHECK(of<double>(DType::f64, {3, 0}, {4, 0}).nmse == 1.0 / 16);
    CHECK(of<float>(DType::f32, {0, -0.0f}, {-0.0f, 0}).nmse == 0);
    CHECK(of<float>(DType::f32, {1e-30f}, {0}).nmse == k_infinity);
    CHECK(of<double>(DType::f64, {1e300, 1}, {-1e300, 1}).nmse == k_infinity);  // squares overflow
}

TEST_CASE("difference: NaN and infinities must meet their like") {
    const float inf = std::numeric_limits<float>::infinity();
    CHECK(of<float>(DType::f32, {k_nan, inf, -inf, 1}, {k_nan, inf, -inf, 1}).nmse == 0);
    for (auto [got, expected] : {std::pair{k_nan, 1.0f}, {1.0f, k_nan}, {inf, 1.0f}, {1.0f, inf}, {-inf, inf}}) {
        const Difference d = of<float>(DType::f32, {2, 2, got, 5}, {2, 2, expected, 9});
        CAPTURE(got);
        CAPTURE(expected);
        CHECK(d.nmse == k_infinity);
        CHECK(d.worst == 2);
    }
}

TEST_CASE("difference: halves and 8-bit blocks are decoded") {
    // 1, 1.5, -2, smallest subnormal, largest, 0
    const std::vector<uint16_t> halves{0x3c00, 0x3e00, 0xc000, 0x0001, 0x7bff, 0};
    CHECK(of(DType::f16, halves, halves).nmse == 0);
    for (auto [bits, value] :
         {std::pair{0x3c00, 1.0}, {0x3e00, 1.5}, {0xc000, -2.0}, {0x0001, std::ldexp(1, -24)}, {0x7bff, 65504.0}}) {
        const Difference d = of<uint16_t>(DType::f16, {0}, {uint16_t(bits)});
        CHECK(d.nmse == 1);
        CHECK(d.expected == value);
    }
    CHECK(of<uint16_t>(DType::f16, {0x7e00}, {0x7c01}).nmse == 0);  // two NaNs
    CHECK(of<uint16_t>(DType::f16, {0x7c00}, {0xfc00}).nmse == k_infinity);
    CHECK(of<uint16_t>(DType::bf16, {0x3f80}, {0xc040}).expected == -3);

    std::vector<uint8_t> got(34, 0), expected(34, 0);
    got[1] = expected[1] = 0x38;  // a scale of 0.5
    expected[2] = 4;              // 2
    got[2] = 3;                   // 1.5
    expected[33] = uint8_t(-2);   // -1
    got[33] = uint8_t(-2);
    const Difference d = of(DType::q8_0, got, expected);
    CHECK(d.elements == 32);
    CHECK(d.nmse == 0.25 / 5);
    CHECK(d.got == 1.5);
}

TEST_CASE("difference: integers and undecoded blocks are equal or not") {
    const Difference d = of<int32_t>(DType::i32, {1, 2, 3, 4}, {1, 2, 4, 9});
    CHECK(d.nmse == 0.5);
    CHECK(d.unequal == 2);
    CHECK(d.worst == 3);
    CHECK(d.expected == 9);
    const int64_t large = int64_t{1} << 62;
    CHECK(of<int64_t>(DType::i64, {large}, {large + 1}).nmse == 1);  // equal as doubles
    CHECK(of<int8_t>(DType::i8, {-1}, {-1}).nmse == 0);
    std::vector<uint8_t> got(60, 7), expected = got;
    got[25] = 8;
    const Difference blocks = of(DType::q4_1, got, expected);
    CHECK(blocks.elements == 3);
    CHECK(blocks.worst == 1);
    CHECK(blocks.nmse == 1.0 / 3);
}

TEST_CASE("difference: adding piece by piece is the same") {
    const std::vector<float> got{1, 2, 3, 4, 5, 7}, expected{1, 2, 4, 4, 5, 5};
    DifferenceMeter meter(DType::f32);
    for (size_t at = 0; at < got.size(); at += 2)
        meter.add(std::as_bytes(std::span(got).subspan(at, 2)), std::as_bytes(std::span(expected).subspan(at, 2)));
    const Difference whole = of(DType::f32, got, expected);
    CHECK(meter.result().nmse == whole.nmse);
    CHECK(meter.result().worst == 5);
    CHECK(meter.result().worst == whole.worst);
}

TEST_CASE("difference: what isn't two values of one type") {
    const std::vector<std::byte> bytes(34);
    CHECK(difference(DType::f32, std::span(bytes).first(8), std::span(bytes).first(4)).status().code() ==
          Code::invalid_argument);
    CHECK(difference(DType::f32, std::span(bytes).first(3), std::span(bytes).first(3)).status().code() ==
          Code::invalid_argument);
    CHECK(difference(DType(9999), bytes, bytes).status().code() == Code::invalid_argument);
}
