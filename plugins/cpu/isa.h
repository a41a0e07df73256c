// Which instruction sets kernels may use: what the processor has, what the operating system saves, and what the user
// allows.
//
// Every kernel keeps an ordered list of rows, fastest first, the plain reference last. A row names the features that it
// needs; the first row whose needs are met is taken. A new instruction set is a bit here, a test in detect_isa(), a
// level of the option, and rows where it pays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon::cpu {

using Features = uint32_t;
inline constexpr Features isa_reference = 0;  // whatever the compiler's baseline is
inline constexpr Features isa_avx2 = 1;       // AVX2, FMA and F16C, with YMM state saved

// Usable features: CPUID says that the instructions exist, XGETBV that the system keeps their registers.
Features detect_isa() noexcept;

// The processor's brand string, blanks trimmed, or "CPU".
std::string cpu_brand();

// Reads the option isa=NAME against what was detected: "auto" gives everything, "reference" nothing, a row's name
// ("avx2") that row and those that come after it. Returns an empty string and sets out, or the reason why not.
std::string parse_isa(std::string_view text, Features detected, Features &out);

// One row of a kernel's list. Fn is the kernel's function type or a struct of functions.
template <class Fn>
struct Row {
    const char *name;
    Features needs;
    Fn fn;
};

// The first row whose needs are met. Lists end with a row that needs nothing.
template <class Fn, size_t N>
const Row<Fn> &choose(const Row<Fn> (&rows)[N], Features have) noexcept {
    for (size_t i = 0; i + 1 < N; ++i) {
        if ((rows[i].needs & ~have) == 0) return rows[i];
    }
    return rows[N - 1];
}

}  // namespace tenon::cpu
