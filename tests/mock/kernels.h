// One row per op: what it accepts, how much scratch it wants, how it computes. Plain loops over strided operands, sums
// in double. Nothing is allocated while running (D39).
#ifndef TENON_TESTS_MOCK_KERNELS_H
#define TENON_TESTS_MOCK_KERNELS_H

#include "decode.h"
#include "tenon/plugin.hpp"

namespace mock {

using tenon::plugin::NodeView;
using tenon::plugin::RunView;
using tenon::plugin::Support;
using tenon::plugin::ValueView;

/// Where a node's operands lie in this run; the group's unstored values lie in its scratch.
struct Memory {
    static constexpr uint64_t kStored = UINT64_MAX;

    const RunView *run;
    std::span<const uint64_t> unstored_at;  // per value: bytes from the begin of scratch, or kStored
    std::byte *scratch = nullptr;

    std::byte *at(const ValueView &v) const {
        const uint64_t unstored = unstored_at[v.index];
        return unstored == kStored ? run->at<std::byte>(v.index) : scratch + unstored;
    }
};

struct Kernel {
    uint32_t op;
    Support (*check)(const NodeView &node);
    uint64_t (*scratch)(const NodeView &node);  // bytes; 0: none ever
    void (*run)(const NodeView &node, const Memory &memory, std::byte *scratch);
};

/// 0 for an op that the mock doesn't know.
const Kernel *find_kernel(uint32_t op);
std::span<const Kernel> elementwise_kernels();
std::span<const Kernel> row_kernels();
std::span<const Kernel> product_kernels();
std::span<const Kernel> composite_kernels();

/// f(offsets) for each row (all dimensions but the last) of shape: the operands' byte offsets there. Operands have its
/// rank.
template <size_t N, class F>
void for_each_row(const ValueView &shape, const std::array<const ValueView *, N> &operands, F &&f) {
    if (shape.is_empty()) return;
    std::array<int64_t, TN_MAX_RANK> index{};
    const uint32_t outer = shape.rank == 0 ? 0 : shape.rank - 1;
    std::array<int64_t, N> at{};
    for (;;) {
        f(at);
        uint32_t i = outer;
        while (i-- > 0) {
            ++index[i];
            for (size_t k = 0; k < N; ++k) at[k] += operands[k]->stride[i];
            if (index[i] < shape.shape[i]) break;
            for (size_t k = 0; k < N; ++k) at[k] -= operands[k]->stride[i] * index[i];
            index[i] = 0;
        }
        if (i == UINT32_MAX) return;
    }
}

/// Byte offset of row `row`, counted row-major over all dimensions but the last `inner`.
inline int64_t offset_of(const ValueView &v, int64_t row, uint32_t inner = 1) {
    int64_t at = 0;
    for (uint32_t i = v.rank > inner ? v.rank - inner : 0; i-- > 0;) {
        at += row % v.shape[i] * v.stride[i];
        row /= v.shape[i];
    }
    return at;
}

inline bool same_outer(const ValueView &a, const ValueView &b) {
    if (a.rank != b.rank) return false;
    for (uint32_t i = 0; i + 1 < a.rank; ++i) {
        if (a.shape[i] != b.shape[i]) return false;
    }
    return true;
}

inline Support check_output(const NodeView &node, bool (*type_ok)(uint32_t)) {
    const ValueView &out = node.output();
    if (!type_ok(out.type)) return Support::no("no output of type ", out.info->name);
    if (!out.is_contiguous()) return Support::no("the output isn't contiguous");
    return Support::yes();
}

}  // namespace mock
#endif
