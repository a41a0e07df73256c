#include "decode.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "tenon/ops.h"

namespace mock {
namespace {

template <class T>
T raw(const std::byte *at) {
    T word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

template <class T>
void put(std::byte *at, T word) {
    std::memcpy(at, &word, sizeof word);
}

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15), 10 fraction bits.
double from_half(uint16_t bits) {
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    double number = 0;
    if (exponent == 31) number = fraction != 0 ? std::nan("") : HUGE_VAL;
    if (exponent == 0) number = std::ldexp(fraction, -24);
    if (exponent > 0 && exponent < 31) number = std::ldexp(1024 + fraction, exponent - 25);
    return (bits & 0x8000) != 0 ? -number : number;
}

uint16_t to_half(double number) {
    const uint16_t sign = std::signbit(number) ? 0x8000 : 0;
    const double size = std::fabs(number);
    if (std::isnan(number)) return sign | 0x7e00;
    if (size >= 65520) return sign | 0x7c00;  // rounds beyond the largest, 65504
    if (size < std::ldexp(1.0, -14)) return sign | static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 24)));
    int exponent = 0;
    const double fraction = std::frexp(size, &exponent);                             // in [0.5, 1)
    const auto scaled = static_cast<int>(std::nearbyint(std::ldexp(fraction, 11)));  // in [1024, 2048]
    return sign | static_cast<uint16_t>(((exponent + 14) << 10) + (scaled - 1024));  // a carry raises the exponent
}

// bfloat16 is the upper half of binary32.
double from_bf16(uint16_t bits) {
    return std::bit_cast<float>(uint32_t{bits} << 16);
}

uint16_t to_bf16(double number) {
    const auto bits = std::bit_cast<uint32_t>(static_cast<float>(number));
    if (std::isnan(number)) return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// 32 elements a block. q4_0: d f16, 16 bytes, low nibbles first: d (q - 8). q4_1: d, m f16, 16 bytes: d q + m.
// q8_0: d f16, 32 int8: d q.
float block_element(const std::byte *block, uint32_t type, int i) {
    const double d = from_half(raw<uint16_t>(block));
    if (type == TN_TYPE_ID_Q8_0) return static_cast<float>(d * raw<int8_t>(block + 2 + i));
    const bool with_min = type == TN_TYPE_ID_Q4_1;
    const auto packed = raw<uint8_t>(block + (with_min ? 4 : 2) + i % 16);
    const int q = i < 16 ? packed & 15 : packed >> 4;
    return static_cast<float>(with_min ? d * q + from_half(raw<uint16_t>(block + 2)) : d * (q - 8));
}

}  // namespace

bool is_float(uint32_t type) {
    return type == TN_TYPE_ID_F32 || type == TN_TYPE_ID_F16 || type == TN_TYPE_ID_BF16;
}
bool is_index(uint32_t type) {
    return type == TN_TYPE_ID_I32 || type == TN_TYPE_ID_I64;
}
bool is_number(uint32_t type) {
    return is_float(type) || is_index(type);
}
bool can_decode(uint32_t type) {
    return is_number(type) || type == TN_TYPE_ID_Q4_0 || type == TN_TYPE_ID_Q4_1 || type == TN_TYPE_ID_Q8_0;
}

double load(const std::byte *at, uint32_t type) {
    switch (type) {
        case TN_TYPE_ID_F32: return raw<float>(at);
        case TN_TYPE_ID_F16: return from_half(raw<uint16_t>(at));
        case TN_TYPE_ID_BF16: return from_bf16(raw<uint16_t>(at));
        case TN_TYPE_ID_I32: return raw<int32_t>(at);
        default: return static_cast<double>(raw<int64_t>(at));
    }
}

void store(std::byte *at, uint32_t type, double number) {
    switch (type) {
        case TN_TYPE_ID_F32: return put(at, static_cast<float>(number));
        case TN_TYPE_ID_F16: return put(at, to_half(number));
        case TN_TYPE_ID_BF16: return put(at, to_bf16(number));
        // a float outside the integer's range has no right answer: the nearest that is in it
        case TN_TYPE_ID_I32:
            return put(at, number >= 2147483648.0   ? INT32_MAX
                           : number > -2147483649.0 ? static_cast<int32_t>(number)
                                                    : INT32_MIN);
        default:
            return put(at, number >= 9223372036854775808.0    ? INT64_MAX
                           : number >= -9223372036854775808.0 ? static_cast<int64_t>(number)
                                                              : INT64_MIN);
    }
}

int64_t load_index(const std::byte *at, uint32_t type) {
    return type == TN_TYPE_ID_I32 ? raw<int32_t>(at) : raw<int64_t>(at);
}

void decode_row(const std::byte *row, uint32_t type, int64_t n, float *out) {
    if (type == TN_TYPE_ID_F32) {
        if (n > 0) std::memcpy(out, row, static_cast<size_t>(n) * sizeof(float));
        return;
    }
    if (is_number(type)) {
        const int64_t bytes = type == TN_TYPE_ID_I64 ? 8 : type == TN_TYPE_ID_I32 ? 4 : 2;
        for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(load(row + i * bytes, type));
        return;
    }
    const int64_t block_bytes = type == TN_TYPE_ID_Q8_0 ? 34 : type == TN_TYPE_ID_Q4_1 ? 20 : 18;
    for (int64_t i = 0; i < n; ++i) out[i] = block_element(row + i / 32 * block_bytes, type, static_cast<int>(i % 32));
}

}  // namespace mock
