// How elementwise kernels walk their operands and share them out.
#pragma once

#include <algorithm>

#include "kernel.h"

namespace tenon::cpu {

// Elementwise work on whole operands in one piece is cut at multiples of 16 elements: two threads seldom write to one
// cache line then, and vector loops have one tail only. Other operands are cut in rows.
inline constexpr int64_t elements_a_unit = 16;

inline Cut elementwise_cut(const Operand &x, bool contiguous, int64_t cost_an_element) noexcept {
    if (!contiguous) return Cut::of(x.rows(), x.last() * cost_an_element);
    return Cut::of((x.elements() + elements_a_unit - 1) / elements_a_unit, elements_a_unit * cost_an_element);
}

// A kernel that calls body(x, step, y, n) for stretches of input 0 (elements `step` floats apart) and output 0
// (contiguous).
template <class Body>
std::unique_ptr<Kernel> elementwise_kernel(const Operand &x, int64_t cost_an_element, Body body) {
    const bool contiguous = x.contiguous();
    return make_kernel(
        elementwise_cut(x, contiguous, cost_an_element), [=](const Args &args, int64_t first, int64_t last) {
            if (contiguous) {
                const int64_t begin = first * elements_a_unit, end = std::min(x.elements(), last * elements_a_unit);
                body(args.input<float>(0) + begin, int64_t(1), args.output<float>(0) + begin, end - begin);
                return;
            }
            const int64_t step = x.last_stride() / int64_t(sizeof(float));
            for (int64_t r = first; r < last; ++r) {
                body(args.input<float>(0, x.row_offset(r)), step, args.output<float>(0) + r * x.last(), x.last());
            }
        });
}

// The same with two inputs: body(a, step_a, b, step_b, y, n). All have the output's shape.
template <class Body>
std::unique_ptr<Kernel> elementwise_kernel(const Operand &a, const Operand &b, int64_t cost_an_element, Body body) {
    const bool contiguous = a.contiguous() && b.contiguous();
    return make_kernel(
        elementwise_cut(a, contiguous, cost_an_element), [=](const Args &args, int64_t first, int64_t last) {
            if (contiguous) {
                const int64_t begin = first * elements_a_unit, end = std::min(a.elements(), last * elements_a_unit);
                body(args.input<float>(0) + begin, int64_t(1), args.input<float>(1) + begin, int64_t(1),
                     args.output<float>(0) + begin, end - begin);
                return;
            }
            const int64_t step_a = a.last_stride() / int64_t(sizeof(float)),
                          step_b = b.last_stride() / int64_t(sizeof(float));
            for (int64_t r = first; r < last; ++r) {
                body(args.input<float>(0, a.row_offset(r)), step_a, args.input<float>(1, b.row_offset(r)), step_b,
                     args.output<float>(0) + r * a.last(), a.last());
            }
        });
}

}  // namespace tenon::cpu
