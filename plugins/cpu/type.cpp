#include "type.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "kernel.h"

namespace tenon::cpu {

#define TENON_CPU_TYPE(name) extern const Type type_##name;
#include "type_tables.inc"
#undef TENON_CPU_TYPE

namespace {

const Type *const k_all[] = {
#define TENON_CPU_TYPE(name) &type_##name,
#include "type_tables.inc"
#undef TENON_CPU_TYPE
};

}  // namespace

const Type *find_type(uint32_t id) noexcept {
    const auto found = std::ranges::find(k_all, id, &Type::id);
    return found == std::end(k_all) ? nullptr : *found;
}

std::string no_decoder(uint32_t id) {
    std::string text = type_name(id) + " has no decoder here (types: ";
    for (const Type *type : k_all) text += (type == k_all[0] ? "" : ", ") + type_name(type->id);
    return text + ")";
}

const TypeRow &choose(const Type &type, Features have) noexcept {
    for (const TypeRow &row : type.rows) {
        if ((row.needs & ~have) == 0) return row;
    }
    return type.rows.back();
}

float f16_to_f32(uint16_t half) noexcept {
    const uint32_t sign = uint32_t(half & 0x8000u) << 16;
    const uint32_t exponent = half >> 10 & 0x1fu, fraction = half & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
    if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = float(fraction) * 0x1p-24f;  // subnormal, exact in f32
    return sign != 0 ? -magnitude : magnitude;
}

uint16_t f32_to_f16(float value) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint16_t sign = uint16_t(bits >> 16 & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return uint16_t(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) return uint16_t(sign | 0x7c00u);  // from 65520 on: rounds to infinity
    if (magnitude < 0x38800000u) {
        // Subnormal: adding 0.5 puts the half's unit at the last bit of the sum, which rounds it.
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return uint16_t(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1);
    return uint16_t(sign | ((rounded >> 13) - (112u << 10)));
}

uint16_t f32_to_bf16(float value) noexcept {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40u);
    return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace tenon::cpu
