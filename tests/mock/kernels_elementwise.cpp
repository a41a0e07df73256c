// Elementwise ops and conversion: operands broadcast by stride 0, the output may lie where the first input lies.
#include <cmath>

#include "kernels.h"

namespace mock {
namespace {

using tenon::plugin::find_op;

double apply_binary(uint32_t op, double a, double b) {
    switch (op) {
        case TN_OP_ADD: return a + b;
        case TN_OP_SUB: return a - b;
        case TN_OP_MUL: return a * b;
        case TN_OP_DIV: return a / b;
        // a NaN on either side stays one
        case TN_OP_MAX: return std::isnan(a) || a > b ? a : b;
        default: return std::isnan(a) || a < b ? a : b;
    }
}

double apply_unary(uint32_t op, double x) {
    const double k = 0.79788456080286535588;  // sqrt(2 / pi)
    switch (op) {
        case TN_OP_NEG: return -x;
        case TN_OP_ABS: return std::fabs(x);
        case TN_OP_SQR: return x * x;
        case TN_OP_SQRT: return std::sqrt(x);
        case TN_OP_RSQRT: return 1 / std::sqrt(x);
        case TN_OP_EXP: return std::exp(x);
        case TN_OP_LOG: return std::log(x);
        case TN_OP_SIN: return std::sin(x);
        case TN_OP_COS: return std::cos(x);
        case TN_OP_TANH: return std::tanh(x);
        case TN_OP_SIGMOID: return 1 / (1 + std::exp(-x));
        case TN_OP_RELU: return x < 0 ? 0 : x;
        case TN_OP_SILU: return x / (1 + std::exp(-x));
        case TN_OP_GELU: return 0.5 * x * (1 + std::tanh(k * (x + 0.044715 * x * x * x)));
        case TN_OP_GELU_ERF: return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
        case TN_OP_GELU_QUICK: return x / (1 + std::exp(-1.702 * x));
        default: return x > 30 ? x : std::log1p(std::exp(x));  // softplus
    }
}

Support check_elementwise(const NodeView &node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (!is_float(node.input(i).type)) return Support::no("no input of type ", node.input(i).info->name);
        if (!node.input(i).same_shape(node.output()))
            return Support::no("input ", i, " isn't broadcast to the output's shape");
    }
    return check_output(node, is_float);
}

/// y[i] = f(x[i]) over whole tensors.
template <class F>
void map(const NodeView &node, const Memory &memory, F &&f) {
    const ValueView &x = node.input(0), &y = node.output();
    const std::byte *from = memory.at(x);
    std::byte *to = memory.at(y);
    for_each_row<2>(y, {&x, &y}, [&](const auto &at) {
        for (int64_t i = 0; i < y.last(); ++i) {
            store(to + at[1] + i * y.inner_stride(0), y.type, f(load(from + at[0] + i * x.inner_stride(0), x.type)));
        }
    });
}

void run_binary(const NodeView &node, const Memory &memory, std::byte *) {
    const ValueView &a = node.input(0), &b = node.input(1), &y = node.output();
    const std::byte *from_a = memory.at(a), *from_b = memory.at(b);
    std::byte *to = memory.at(y);
    for_each_row<3>(y, {&a, &b, &y}, [&](const auto &at) {
        for (int64_t i = 0; i < y.last(); ++i) {
            const double left = load(from_a + at[0] + i * a.inner_stride(0), a.type);
            const double right = load(from_b + at[1] + i * b.inner_stride(0), b.type);
            store(to + at[2] + i * y.inner_stride(0), y.type, apply_binary(node.op, left, right));
        }
    });
}

void run_unary(const NodeView &node, const Memory &memory, std::byte *) {
    map(node, memory, [&](double x) { return apply_unary(node.op, x); });
}

void run_affine(const NodeView &node, const Memory &memory, std::byte *) {
    const auto p = node.params<tn_params_affine>();
    map(node, memory, [&](double x) { return double{p.a} * x + double{p.b}; });
}

void run_clamp(const NodeView &node, const Memory &memory, std::byte *) {
    const auto p = node.params<tn_params_clamp>();
    map(node, memory, [&](double x) { return std::isnan(x) ? x : std::min(std::max(x, double{p.lo}), double{p.hi}); });
}

Support check_copy(const NodeView &node) {
    const ValueView &x = node.input(0), &y = node.output();
    if (!x.same_shape(y)) return Support::no("shapes differ");
    if (!y.is_contiguous()) return Support::no("the output isn't contiguous");
    if (x.type == y.type) return Support::yes();
    if (!can_decode(x.type) || !is_number(y.type))
        return Support::no("no conversion from ", x.info->name, " to ", y.info->name);
    return Support::yes();
}

uint64_t copy_scratch(const NodeView &node) {
    const ValueView &x = node.input(0);
    return x.info->is_block() && x.type != node.output().type ? static_cast<uint64_t>(x.last()) * sizeof(float) : 0;
}

void run_copy(const NodeView &node, const Memory &memory, std::byte *scratch) {
    const ValueView &x = node.input(0), &y = node.output();
    const std::byte *from = memory.at(x);
    std::byte *to = memory.at(y);
    if (x.type == y.type) {
        tenon::plugin::for_each_piece(
            x, 0, x.bytes(), [&](uint64_t at, uint64_t done, uint64_t n) { std::memcpy(to + done, from + at, n); });
        return;
    }
    for_each_row<2>(y, {&x, &y}, [&](const auto &at) {
        if (!x.info->is_block()) {
            for (int64_t i = 0; i < y.last(); ++i) {
                store(to + at[1] + i * y.inner_stride(0), y.type, load(from + at[0] + i * x.inner_stride(0), x.type));
            }
            return;
        }
        auto *row = reinterpret_cast<float *>(scratch);
        decode_row(from + at[0], x.type, x.last(), row);
        for (int64_t i = 0; i < y.last(); ++i) store(to + at[1] + i * y.inner_stride(0), y.type, double{row[i]});
    });
}

uint64_t no_scratch(const NodeView &) {
    return 0;
}

constexpr Kernel binary(uint32_t op) {
    return {op, check_elementwise, no_scratch, run_binary};
}
constexpr Kernel unary(uint32_t op) {
    return {op, check_elementwise, no_scratch, run_unary};
}

constexpr Kernel kKernels[] = {
    {TN_OP_COPY, check_copy, copy_scratch, run_copy},
    binary(TN_OP_ADD),
    binary(TN_OP_SUB),
    binary(TN_OP_MUL),
    binary(TN_OP_DIV),
    binary(TN_OP_MAX),
    binary(TN_OP_MIN),
    unary(TN_OP_NEG),
    unary(TN_OP_ABS),
    unary(TN_OP_SQR),
    unary(TN_OP_SQRT),
    unary(TN_OP_RSQRT),
    unary(TN_OP_EXP),
    unary(TN_OP_LOG),
    unary(TN_OP_SIN),
    unary(TN_OP_COS),
    unary(TN_OP_TANH),
    unary(TN_OP_SIGMOID),
    unary(TN_OP_RELU),
    unary(TN_OP_SILU),
    unary(TN_OP_GELU),
    unary(TN_OP_GELU_ERF),
    unary(TN_OP_GELU_QUICK),
    unary(TN_OP_SOFTPLUS),
    {TN_OP_AFFINE, check_elementwise, no_scratch, run_affine},
    {TN_OP_CLAMP, check_elementwise, no_scratch, run_clamp},
};

}  // namespace

std::span<const Kernel> elementwise_kernels() {
    return kKernels;
}

const Kernel *find_kernel(uint32_t op) {
    for (const auto &kernels : {elementwise_kernels(), row_kernels(), product_kernels(), composite_kernels()}) {
        for (const Kernel &kernel : kernels) {
            if (kernel.op == op) return &kernel;
        }
    }
    return nullptr;
}

}  // namespace mock
