// What an op file sees and offers: operands without addresses, a check with reasons, and kernels made of pieces.
//
// An op is one file in ops/. It holds a table of Op rows (id, refuse, make), found through op_tables.inc, which CMake
// writes from the folder's listing. A kernel is made once per node, when all shapes are known, and must not allocate
// when it runs.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "isa.h"
#include "tenon/ops.h"

namespace tenon::cpu {

// A tensor without its address. Strides in bytes, as in the ABI.
struct Operand {
    uint32_t type = TN_NONE;  // TN_NONE: an optional input that is absent
    uint32_t rank = 0;
    std::array<int64_t, TN_MAX_RANK> shape{}, stride{};

    bool present() const noexcept { return type != TN_NONE; }
    // Sizes of the last dimension (1 for a scalar) and of all others together.
    int64_t last() const noexcept { return rank == 0 ? 1 : shape[rank - 1]; }
    int64_t rows() const noexcept;
    int64_t elements() const noexcept { return rows() * last(); }
    // Bytes from element 0 to the first element of a row, rows counted in row-major order.
    int64_t row_offset(int64_t row) const noexcept;
    int64_t last_stride() const noexcept { return rank == 0 ? 0 : stride[rank - 1]; }
    // Whether a row lies in one piece, and whether everything does.
    bool dense_rows() const noexcept;
    bool contiguous() const noexcept;
    bool broadcast() const noexcept;  // an element is read more than once
    bool same_shape(const Operand &other) const noexcept;

    // A contiguous operand; for tests and for values inside a fused group.
    static Operand dense(uint32_t type, std::initializer_list<int64_t> shape);
};

// One node as kernels see it. Owns everything.
struct Problem {
    uint32_t op = 0;
    bool exact = false;
    std::vector<Operand> in, out;
    alignas(8) std::array<std::byte, 128> params{};

    const Operand *input(size_t i) const noexcept { return i < in.size() && in[i].present() ? &in[i] : nullptr; }
    template <class P>
    const P &as() const noexcept {
        static_assert(sizeof(P) <= sizeof(params));
        return *reinterpret_cast<const P *>(params.data());
    }
    template <class P>
    void set(const P &value) noexcept {
        static_assert(sizeof(P) <= sizeof(params));
        *reinterpret_cast<P *>(params.data()) = value;
    }
};

// Addresses of one run. An absent input's is null. An output may lie where input 0 lies if ops.def allows it.
struct Args {
    const std::byte *const *in = nullptr;
    std::byte *const *out = nullptr;
    std::byte *scratch = nullptr;  // 64-byte aligned, scratch_bytes() long

    template <class T>
    const T *input(size_t i, int64_t offset = 0) const noexcept {
        return reinterpret_cast<const T *>(in[i] + offset);
    }
    template <class T>
    T *output(size_t i, int64_t offset = 0) const noexcept {
        return reinterpret_cast<T *>(out[i] + offset);
    }
};

// A node (or a fused group) ready to run: one phase or several, each in pieces that threads claim (team.h). Immutable:
// one kernel may run for several sets of addresses at once. Nothing here depends on the number of threads, which may
// change between runs; and no result does, since each piece has outputs of its own.
class Kernel {
public:
    virtual ~Kernel() = default;
    virtual uint64_t scratch_bytes() const noexcept { return 0; }
    virtual int phases() const noexcept { return 1; }
    // Pieces of a phase; 0: nothing to do.
    virtual int64_t pieces(int phase) const noexcept = 0;
    virtual void piece(const Args &args, int phase, int64_t i) const noexcept = 0;
};

// How n units of work, each of about so many simple element operations, are cut: pieces worth claiming, all but the
// last of `grain` units.
struct Cut {
    int64_t n = 0, grain = 1;
    static Cut of(int64_t n, int64_t cost_a_unit) noexcept {
        constexpr int64_t k_piece_cost = 16384;  // some microseconds
        return {n, std::clamp<int64_t>(k_piece_cost / std::max<int64_t>(1, cost_a_unit), 1, std::max<int64_t>(1, n))};
    }
    int64_t pieces() const noexcept { return (n + grain - 1) / grain; }
    int64_t first(int64_t i) const noexcept { return i * grain; }
    int64_t last(int64_t i) const noexcept { return std::min(n, (i + 1) * grain); }
};

// A kernel of one phase, made of a callable (const Args &, int64_t first, int64_t last) over units.
template <class Body>
std::unique_ptr<Kernel> make_kernel(Cut cut, Body body) {
    struct Simple final : Kernel {
        Simple(Cut c, Body b) : cut(c), body(std::move(b)) {}
        int64_t pieces(int) const noexcept override { return cut.pieces(); }
        void piece(const Args &args, int, int64_t i) const noexcept override { body(args, cut.first(i), cut.last(i)); }
        Cut cut;
        Body body;
    };
    return std::make_unique<Simple>(cut, std::move(body));
}

struct Op {
    uint32_t id;
    // Why this plugin can't compute the problem; empty if it can. Pure.
    std::string (*refuse)(const Problem &problem);
    // Only for problems that weren't refused. Throws std::bad_alloc only.
    std::unique_ptr<Kernel> (*make)(const Problem &problem, Features features);
};

// The row of an op, or null.
const Op *find_op(uint32_t id) noexcept;

// Builds up a refusal: the first requirement that fails gives the reason, later ones aren't looked at.
class Check {
public:
    explicit Check(const Problem &problem) : problem_(problem) {}

    // Input or output i exists and has one of these types.
    Check &in(size_t i, std::initializer_list<uint32_t> types);
    Check &out(size_t i, std::initializer_list<uint32_t> types);
    // The same, if it exists.
    Check &optional_in(size_t i, std::initializer_list<uint32_t> types);
    // The usual case: f32, rows in one piece (in), all in one piece (out).
    Check &activation_in(size_t i);
    Check &activation_out(size_t i);
    // Vector f32 [size], in one piece; optional.
    Check &optional_vector(size_t i, int64_t size);
    // Evaluated only if all before holds.
    template <class Condition>
    Check &require(Condition condition, const char *why) {
        if (reason_.empty() && !condition()) reason_ = why;
        return *this;
    }
    // With words that are made only for a refusal.
    template <class Condition, class Why>
    Check &require(Condition condition, Why why) {
        if (reason_.empty() && !condition()) reason_ = why();
        return *this;
    }
    std::string reason() const { return reason_; }

private:
    Check &typed(const char *what, size_t i, const Operand *operand, std::initializer_list<uint32_t> types);
    const Problem &problem_;
    std::string reason_;
};

// Name of a type as dtypes.def has it, or its number.
std::string type_name(uint32_t type);
// Elements and bytes of a type's block; {0, 0} for an unknown type.
struct Block {
    int64_t elements, bytes;
};
Block block_of(uint32_t type) noexcept;

}  // namespace tenon::cpu
