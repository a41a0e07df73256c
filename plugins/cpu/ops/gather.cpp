// gather_rows: rows of a table (any type of types/), decoded to f32. gather_last: elements picked within each row.
// An index outside its range gives zeros.
#include <cstring>

#include "ids.h"
#include "type.h"

namespace tenon::cpu {
namespace {

std::string refuse_rows(const Problem &p) {
    Check check(p);
    check.require([&] { return p.input(0) != nullptr; }, "the table is missing");
    check.require([&] { return find_type(p.in[0].type) != nullptr; },
                  [&] { return "the table's type " + no_decoder(p.in[0].type); });
    check.in(1, {TN_TYPE_ID_I32, TN_TYPE_ID_I64}).activation_out(0);
    check.require([&] { return p.in[0].rank == 2 && p.in[0].dense_rows(); },
                  "the table isn't [n, d] with rows in one piece");
    check.require([&] { return p.out[0].rank >= 1 && p.out[0].last() == p.in[0].shape[1]; },
                  "the output isn't [k..., d]");
    return check
        .require([&] { return p.out[0].rows() == p.in[1].elements(); }, "ids and the output's rows differ in number")
        .reason();
}

std::unique_ptr<Kernel> make_rows(const Problem &p, Features features) {
    return make_kernel(Cut::of(p.in[1].elements(), p.in[0].shape[1]),
                       [table = p.in[0], ids = p.in[1], decode = choose(*find_type(p.in[0].type), features).decode](
                           const Args &args, int64_t first, int64_t last) {
                           const int64_t d = table.shape[1];
                           if (d == 0) return;
                           for (int64_t i = first; i < last; ++i) {
                               const int64_t id = id_at(ids, args.in[1], i);
                               float *y = args.output<float>(0) + i * d;
                               if (id >= 0 && id < table.shape[0]) {
                                   decode(args.in[0] + id * table.stride[0], y, d);
                               } else {
                                   std::memset(y, 0, size_t(d) * sizeof(float));
                               }
                           }
                       });
}

std::string refuse_last(const Problem &p) {
    Check check(p);
    check.in(0, {TN_TYPE_ID_F32}).in(1, {TN_TYPE_ID_I32}).activation_out(0);
    check.require([&] { return p.in[0].rank >= 1 && p.out[0].same_shape(p.in[1]); }, "ids and output differ in shape");
    return check
        .require([&] { return p.in[0].rows() == p.in[1].rows(); }, "x and ids differ in their leading dimensions")
        .reason();
}

std::unique_ptr<Kernel> make_last(const Problem &p, Features) {
    return make_kernel(Cut::of(p.in[1].rows(), 4 * p.in[1].last()), [x = p.in[0], ids = p.in[1]](
                                                                        const Args &args, int64_t first, int64_t last) {
        const int64_t k = ids.last();
        for (int64_t r = first; r < last; ++r) {
            const int64_t row = x.row_offset(r);
            for (int64_t j = 0; j < k; ++j) {
                const int64_t id = id_at(ids, args.in[1], r * k + j);
                const bool inside = id >= 0 && id < x.last();
                args.output<float>(0)[r * k + j] = inside ? *args.input<float>(0, row + id * x.last_stride()) : 0.0f;
            }
        }
    });
}

constexpr Op k_ops[] = {{TN_OP_GATHER_ROWS, refuse_rows, make_rows}, {TN_OP_GATHER_LAST, refuse_last, make_last}};

}  // namespace

std::span<const Op> ops_gather() {
    return k_ops;
}

}  // namespace tenon::cpu
