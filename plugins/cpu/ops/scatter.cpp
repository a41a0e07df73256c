// scatter_rows: rows of f32 written into a table in place, converted to its type. kv_append: the same on [n, h_kv, d].
// An id outside the table (-1) drops its row; of equal ids the last wins.
#include "encode.h"
#include "ids.h"

namespace tenon::cpu {
namespace {

class ScatterKernel final : public Kernel {
public:
    ScatterKernel(const Problem &p, Features features)
        : table_(p.out[0]), rows_(p.in[1]), ids_(p.in[2]), encode_(choose_encode(p.out[0].type, features)) {
        one_row_ = table_;  // what lies below the first dimension
        one_row_.rank = table_.rank - 1;
        for (uint32_t i = 0; i < one_row_.rank; ++i) {
            one_row_.shape[i] = table_.shape[i + 1];
            one_row_.stride[i] = table_.stride[i + 1];
        }
    }

    // Each row of the table belongs to one piece, which takes the new rows in order: so the last of equal ids wins.
    int64_t pieces(int) const noexcept override {
        return Cut::of(ids_.elements(), rows_.elements() / std::max<int64_t>(1, ids_.elements())).pieces();
    }

    void piece(const Args &args, int phase, int64_t mine) const noexcept override {
        const int64_t all = pieces(phase), parts = one_row_.rows(), d = one_row_.last();
        for (int64_t i = 0; i < ids_.elements(); ++i) {
            const int64_t id = id_at(ids_, args.in[2], i);
            if (id < 0 || id >= table_.shape[0] || id % all != mine) continue;
            for (int64_t part = 0; part < parts; ++part) {
                encode_(args.input<float>(1, rows_.row_offset(i * parts + part)),
                        args.output<std::byte>(0, id * table_.stride[0] + one_row_.row_offset(part)), d);
            }
        }
    }

private:
    Operand table_, one_row_, rows_, ids_;
    EncodeFn encode_;
};

std::string refuse(const Problem &p) {
    Check check(p);
    const std::initializer_list<uint32_t> types = {TN_TYPE_ID_F32, TN_TYPE_ID_F16, TN_TYPE_ID_BF16, TN_TYPE_ID_Q8_0};
    check.in(0, types).activation_in(1).in(2, {TN_TYPE_ID_I32, TN_TYPE_ID_I64}).out(0, types);
    check.require([&] { return p.in[0].type == p.out[0].type && p.in[0].same_shape(p.out[0]); },
                  "the output isn't the first input");
    check.require([&] { return p.in[0].rank >= 2 && p.in[0].rank == p.in[1].rank && p.out[0].dense_rows(); },
                  "table and rows aren't [n, ...] and [k, ...] with the last dimension in one piece");
    for (uint32_t i = 1; p.in.size() > 1 && i < p.in[1].rank; ++i) {
        check.require([&] { return p.in[0].shape[i] == p.in[1].shape[i]; }, "rows and table differ in size");
    }
    return check.require([&] { return p.in[2].rank == 1 && p.in[2].shape[0] == p.in[1].shape[0]; }, "ids aren't [k]")
        .reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features features) {
    return std::make_unique<ScatterKernel>(p, features);
}

constexpr Op k_ops[] = {{TN_OP_SCATTER_ROWS, refuse, make}, {TN_OP_KV_APPEND, refuse, make}};

}  // namespace

std::span<const Op> ops_scatter() {
    return k_ops;
}

}  // namespace tenon::cpu
