#include "isa.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#define TENON_CPU_X86 1
#endif

#include <cstring>

namespace tenon::cpu {
namespace {

#if TENON_CPU_X86
struct Registers {
    uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t sub = 0) noexcept {
    Registers r;
    if (__get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d) == 0) return {};
    return r;
}

// The state components that the system saves on a switch of threads (XCR0). Only legal if CPUID reports OSXSAVE.
uint64_t saved_state() noexcept {
    uint32_t low = 0, high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
}

constexpr bool has(uint32_t word, unsigned bit) noexcept {
    return (word >> bit & 1) != 0;
}
#endif

struct Level {
    const char *name;
    Features features;  // with all the levels below
    const char *needs;  // for messages
};

constexpr Level k_levels[] = {
    {"reference", isa_reference, "nothing"},
    {"avx2", isa_avx2, "AVX2, FMA and F16C"},
};

}  // namespace

Features detect_isa() noexcept {
    Features found = isa_reference;
#if TENON_CPU_X86
    const Registers one = cpuid(1), seven = cpuid(7);
    if (!has(one.c, 27)) return found;  // OSXSAVE
    const uint64_t saved = saved_state();
    const bool ymm = (saved & 0x06) == 0x06;  // SSE and AVX
    if (ymm && has(one.c, 28) && has(one.c, 12) && has(one.c, 29) && has(seven.b, 5)) found |= isa_avx2;
#endif
    return found;
}

std::string cpu_brand() {
#if TENON_CPU_X86
    char text[49] = {};
    for (uint32_t i = 0; i < 3; ++i) {
        const Registers r = cpuid(0x80000002u + i);
        std::memcpy(text + 16 * i, &r, 16);
    }
    std::string_view brand(text);
    const size_t begin = brand.find_first_not_of(' ');
    if (begin != std::string_view::npos)
        return std::string(brand.substr(begin, brand.find_last_not_of(' ') + 1 - begin));
#endif
    return "CPU";
}

std::string parse_isa(std::string_view text, Features detected, Features &out) {
    if (text == "auto") {
        out = detected;
        return {};
    }
    std::string known = "auto";
    for (const Level &level : k_levels) {
        if (text != level.name) {
            known.append(", ").append(level.name);
            continue;
        }
        if ((level.features & ~detected) != 0) {
            return "isa=" + std::string(text) + ": this machine lacks it (needs " + level.needs +
                   ", saved by the operating system)";
        }
        out = level.features;
        return {};
    }
    return "isa=" + std::string(text) + ": unknown; known are " + known;
}

}  // namespace tenon::cpu
