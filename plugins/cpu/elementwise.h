// How elementwise kernels walk their operands and share them out.
#pragma once

#include <algorithm>

#include "kernel.h"

namespace tenon::cpu {

// This thread's share of n elements, cut at multiples of 16, so that two threads seldom write to one cache line and
// vector loops have one tail only. The cuts don't influence results: elements are independent.
inline std::pair<int64_t, int64_t> element_share(int64_t n, const Crew &crew) noexcept {
    const auto [first, last] = crew.share((n + 15) / 16);
    return {std::min(n, first * 16), std::min(n, last * 16)};
}

// Calls body(x, step, y, n) for stretches of input 0 (elements `step` floats apart) and output 0 (contiguous, f32).
template <class Body>
void for_each_row(const Operand &x, const Args &args, Crew &crew, Body body) noexcept {
    if (x.contiguous()) {
        const auto [first, last] = element_share(x.elements(), crew);
        if (first < last) body(args.input<float>(0) + first, int64_t(1), args.output<float>(0) + first, last - first);
        return;
    }
    const auto [first, last] = crew.share(x.rows());
    const int64_t step = x.last_stride() / int64_t(sizeof(float));
    for (int64_t r = first; r < last; ++r) {
        body(args.input<float>(0, x.row_offset(r)), step, args.output<float>(0) + r * x.last(), x.last());
    }
}

// The same with two inputs: body(a, step_a, b, step_b, y, n). All have the output's shape.
template <class Body>
void for_each_row_pair(const Operand &a, const Operand &b, const Args &args, Crew &crew, Body body) noexcept {
    if (a.contiguous() && b.contiguous()) {
        const auto [first, last] = element_share(a.elements(), crew);
        if (first >= last) return;
        body(args.input<float>(0) + first, int64_t(1), args.input<float>(1) + first, int64_t(1),
             args.output<float>(0) + first, last - first);
        return;
    }
    const auto [first, last] = crew.share(a.rows());
    const int64_t step_a = a.last_stride() / int64_t(sizeof(float)), step_b = b.last_stride() / int64_t(sizeof(float));
    for (int64_t r = first; r < last; ++r) {
        body(args.input<float>(0, a.row_offset(r)), step_a, args.input<float>(1, b.row_offset(r)), step_b,
             args.output<float>(0) + r * a.last(), a.last());
    }
}

}  // namespace tenon::cpu
