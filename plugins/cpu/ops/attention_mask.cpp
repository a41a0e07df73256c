// attention_mask: 0 where a token may look, -inf elsewhere; columns are the slots of all sequences
// (tn_params_attention_mask).
#include <limits>

#include "kernel.h"
#include "visible.h"

namespace tenon::cpu {
namespace {

std::string refuse(const Problem &p) {
    Check check(p);
    for (size_t i = 0; i < 4; ++i) {
        check.in(i, {TN_TYPE_ID_I32}).require([&] { return p.in[i].rank == 1; }, "inputs aren't vectors");
    }
    check.activation_out(0).require([&] { return p.as<tn_params_attention_mask>().capacity > 0; }, "capacity is 0");
    check.require([&] { return p.in[0].shape[0] == p.in[1].shape[0] && p.in[2].shape[0] == p.in[3].shape[0]; },
                  "q_pos and seq, or kv_start and kv_len, differ in size");
    return check
        .require(
            [&] {
                const int64_t columns = p.in[2].shape[0] * int64_t(p.as<tn_params_attention_mask>().capacity);
                return p.out[0].rank == 2 && p.out[0].shape[0] == p.in[0].shape[0] && p.out[0].shape[1] == columns;
            },
            "the output isn't [t, s * capacity]")
        .reason();
}

std::unique_ptr<Kernel> make(const Problem &p, Features) {
    return make_kernel(
        Cut::of(p.out[0].shape[0], p.out[0].shape[1]),
        [in = p.in, params = p.as<tn_params_attention_mask>()](const Args &args, int64_t first, int64_t last) {
            const int64_t capacity = params.capacity, sequences = in[2].shape[0], columns = sequences * capacity;
            const auto number = [&](size_t i, int64_t j) {
                return int64_t(*args.input<int32_t>(i, j * in[i].stride[0]));
            };
            for (int64_t t = first; t < last; ++t) {
                float *row = args.output<float>(0) + t * columns;
                std::fill(row, row + columns, -std::numeric_limits<float>::infinity());
                const int64_t s = number(1, t);
                if (s < 0 || s >= sequences) continue;
                const Positions p = visible(number(0, t), number(2, s), number(3, s), params.window, capacity);
                for (int64_t position = p.first; position < p.end; ++position)
                    row[s * capacity + slot_of(position, capacity)] = 0.0f;
            }
        });
}

constexpr Op k_ops[] = {{TN_OP_ATTENTION_MASK, refuse, make}};

}  // namespace

std::span<const Op> ops_attention_mask() {
    return k_ops;
}

}  // namespace tenon::cpu
