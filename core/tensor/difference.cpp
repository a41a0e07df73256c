#include "tensor/difference.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/no_throw.h"

namespace tenon {
namespace {

constexpr double k_infinity = std::numeric_limits<double>::infinity();

template <class T>
T load(const std::byte *at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

/// IEEE 754 binary16.
double decode_f16(uint16_t bits) {
    const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    double value;
    if (exponent == 0x1f) {
        value = fraction ? std::numeric_limits<double>::quiet_NaN() : k_infinity;
    } else if (exponent == 0) {
        value = std::ldexp(fraction, -24);
    } else {
        value = std::ldexp(0x400 + fraction, exponent - 25);
    }
    return bits & 0x8000 ? -value : value;
}

/// The upper half of an IEEE 754 binary32.
double decode_bf16(uint16_t bits) {
    const uint32_t whole = uint32_t(bits) << 16;
    return load<float>(reinterpret_cast<const std::byte *>(&whole));
}

bool is_same(double a, double b) {
    return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

void DifferenceMeter::note(double error, double got, double expected) {
    if (error <= worst_error_) return;
    worst_error_ = error;
    so_far_.worst = so_far_.elements;
    so_far_.got = got;
    so_far_.expected = expected;
}

void DifferenceMeter::add_number(double got, double expected, bool same) {
    double error = same ? 0 : std::abs(got - expected);
    if (std::isnan(error)) error = k_infinity;  // a NaN where there is none
    so_far_.unequal += same ? 0 : 1;
    error_ += error * error;
    if (std::isfinite(expected)) energy_ += expected * expected;
    note(error, got, expected);
    ++so_far_.elements;
}

void DifferenceMeter::add_equal(bool equal) {
    is_counted_ = true;
    so_far_.unequal += equal ? 0 : 1;
    note(equal ? 0 : 1, 0, 0);
    ++so_far_.elements;
}

void DifferenceMeter::add(std::span<const std::byte> got, std::span<const std::byte> expected) {
    const size_t step = size_t(dtype_info(type_).block_bytes);
    const auto each = [&](auto &&decode) {
        for (size_t at = 0; at < expected.size(); at += step) {
            const double a = decode(got.data() + at), b = decode(expected.data() + at);
            add_number(a, b, is_same(a, b));
        }
    };
    const auto each_integer = [&](auto zero) {
        is_counted_ = true;
        for (size_t at = 0; at < expected.size(); at += step) {
            const auto a = load<decltype(zero)>(got.data() + at), b = load<decltype(zero)>(expected.data() + at);
            add_number(double(a), double(b), a == b);
        }
    };
    switch (type_) {
        case DType::f32: return each(load<float>);
        case DType::f64: return each(load<double>);
        case DType::f16: return each([](const std::byte *at) { return decode_f16(load<uint16_t>(at)); });
        case DType::bf16: return each([](const std::byte *at) { return decode_bf16(load<uint16_t>(at)); });
        case DType::i8: return each_integer(int8_t{});
        case DType::i16: return each_integer(int16_t{});
        case DType::i32: return each_integer(int32_t{});
        case DType::i64: return each_integer(int64_t{});
        case DType::q8_0:
            for (size_t at = 0; at < expected.size(); at += step) {
                const std::byte *a = got.data() + at, *b = expected.data() + at;
                const double scale_a = decode_f16(load<uint16_t>(a)), scale_b = decode_f16(load<uint16_t>(b));
                for (size_t i = 2; i < step; ++i) {
                    const double x = scale_a * load<int8_t>(a + i), y = scale_b * load<int8_t>(b + i);
                    add_number(x, y, is_same(x, y));
                }
            }
            return;
        default:
            for (size_t at = 0; at < expected.size(); at += step)
                add_equal(std::memcmp(got.data() + at, expected.data() + at, step) == 0);
    }
}

Difference DifferenceMeter::result() const {
    Difference result = so_far_;
    if (is_counted_) {
        result.nmse = result.elements ? double(result.unequal) / double(result.elements) : 0;
    } else if (error_ > 0) {
        result.nmse = error_ / energy_;
        if (std::isnan(result.nmse)) result.nmse = k_infinity;  // both sums of squares overflow
    }
    return result;
}

Result<Difference> difference(DType type, std::span<const std::byte> got, std::span<const std::byte> expected) {
    return no_throw([&]() -> Result<Difference> {
        const auto block = uint64_t(dtype_info(type).block_bytes);
        if (block == 0 || got.size() != expected.size() || expected.size() % block != 0)
            return Status::invalid_argument(fmt::format("{} and {} bytes are no two values of {} in blocks of {} bytes",
                                                        got.size(), expected.size(), dtype_info(type).name, block));
        DifferenceMeter meter(type);
        meter.add(got, expected);
        return meter.result();
    });
}

}  // namespace tenon
