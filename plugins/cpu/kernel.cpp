#include "kernel.h"

#include <algorithm>

namespace tenon::cpu {

#define TENON_CPU_OPS(name) std::span<const Op> ops_##name();
#include "op_tables.inc"
#undef TENON_CPU_OPS

const Op *find_op(uint32_t id) noexcept {
    const std::span<const Op> tables[] = {
#define TENON_CPU_OPS(name) ops_##name(),
#include "op_tables.inc"
#undef TENON_CPU_OPS
    };
    for (std::span<const Op> table : tables) {
        const auto row = std::ranges::find(table, id, &Op::id);
        if (row != table.end()) return &*row;
    }
    return nullptr;
}

Block block_of(uint32_t type) noexcept {
    switch (type) {
#define TN_DTYPE(id, NAME, name, block_elements, block_bytes) \
    case id:                                                  \
        return {block_elements, block_bytes};
#include "tenon/dtypes.def"
#undef TN_DTYPE
        default: return {0, 0};
    }
}

std::string type_name(uint32_t type) {
    switch (type) {
#define TN_DTYPE(id, NAME, name, block_elements, block_bytes) \
    case id:                                                  \
        return #name;
#include "tenon/dtypes.def"
#undef TN_DTYPE
        default: return "type " + std::to_string(type);
    }
}

int64_t Operand::rows() const noexcept {
    int64_t n = 1;
    for (uint32_t i = 0; i + 1 < rank; ++i) n *= shape[i];
    return n;
}

int64_t Operand::row_offset(int64_t row) const noexcept {
    int64_t bytes = 0;
    for (int i = int(rank) - 2; i >= 0; --i) {
        bytes += row % shape[i] * stride[i];
        row /= shape[i];
    }
    return bytes;
}

bool Operand::dense_rows() const noexcept {
    return rank == 0 || shape[rank - 1] <= block_of(type).elements || stride[rank - 1] == block_of(type).bytes;
}

bool Operand::contiguous() const noexcept {
    if (rank == 0 || elements() == 0) return true;
    if (!dense_rows()) return false;
    const Block block = block_of(type);
    int64_t expected = shape[rank - 1] / block.elements * block.bytes;
    for (int i = int(rank) - 2; i >= 0; --i) {
        if (shape[i] > 1 && stride[i] != expected) return false;
        expected *= shape[i];
    }
    return true;
}

bool Operand::broadcast() const noexcept {
    for (uint32_t i = 0; i < rank; ++i) {
        if (shape[i] > 1 && stride[i] == 0) return true;
    }
    return false;
}

bool Operand::same_shape(const Operand &other) const noexcept {
    return rank == other.rank && std::equal(shape.begin(), shape.begin() + rank, other.shape.begin());
}

Operand Operand::dense(uint32_t type, std::initializer_list<int64_t> shape) {
    Operand o;
    o.type = type;
    o.rank = uint32_t(shape.size());
    std::copy(shape.begin(), shape.end(), o.shape.begin());
    const Block block = block_of(type);
    int64_t step = block.bytes;
    for (int i = int(o.rank) - 1; i >= 0; --i) {
        o.stride[i] = step;
        step *= i + 1 == int(o.rank) ? o.shape[i] / block.elements : o.shape[i];
    }
    return o;
}

Check &Check::typed(const char *what, size_t i, const Operand *operand, std::initializer_list<uint32_t> types) {
    const std::string which = std::string(what) + " " + std::to_string(i);
    if (operand == nullptr) {
        reason_ = which + " is missing";
        return *this;
    }
    if (std::ranges::find(types, operand->type) != types.end()) return *this;
    reason_ = which + " is " + type_name(operand->type) + ", not ";
    for (const uint32_t *type = types.begin(); type != types.end(); ++type) {
        if (type != types.begin()) reason_ += type + 1 == types.end() ? " or " : ", ";
        reason_ += type_name(*type);
    }
    return *this;
}

Check &Check::in(size_t i, std::initializer_list<uint32_t> types) {
    return reason_.empty() ? typed("input", i, problem_.input(i), types) : *this;
}

Check &Check::out(size_t i, std::initializer_list<uint32_t> types) {
    return reason_.empty() ? typed("output", i, i < problem_.out.size() ? &problem_.out[i] : nullptr, types) : *this;
}

Check &Check::optional_in(size_t i, std::initializer_list<uint32_t> types) {
    return problem_.input(i) != nullptr ? in(i, types) : *this;
}

Check &Check::activation_in(size_t i) {
    in(i, {TN_TYPE_ID_F32});
    if (reason_.empty() && !problem_.in[i].dense_rows()) {
        reason_ = "input " + std::to_string(i) + ": elements of a row don't lie side by side";
    }
    return *this;
}

Check &Check::activation_out(size_t i) {
    out(i, {TN_TYPE_ID_F32});
    if (reason_.empty() && !problem_.out[i].contiguous()) reason_ = "output " + std::to_string(i) + " isn't contiguous";
    return *this;
}

Check &Check::optional_vector(size_t i, int64_t size) {
    if (!reason_.empty() || problem_.input(i) == nullptr) return *this;
    activation_in(i);
    if (reason_.empty() && (problem_.in[i].rank != 1 || problem_.in[i].shape[0] != size)) {
        reason_ = "input " + std::to_string(i) + " isn't a vector of " + std::to_string(size);
    }
    return *this;
}

}  // namespace tenon::cpu
