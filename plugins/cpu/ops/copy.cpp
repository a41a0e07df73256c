// copy: any strides to contiguous, type as the output says. concat: along one axis, one type.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "encode.h"
#include "kernel.h"
#include "type.h"

namespace tenon::cpu {
namespace {

bool is_integer(uint32_t type) {
    return type == TN_TYPE_ID_I32 || type == TN_TYPE_ID_I64;
}

// Copies a row's blocks unchanged; step is the distance of two blocks in the source.
void move_row(const std::byte *from, int64_t step, std::byte *to, int64_t blocks, int64_t block_bytes) {
    if (blocks == 0) return;  // an empty tensor may have no address
    if (step == block_bytes || blocks == 1) {
        std::memcpy(to, from, size_t(blocks * block_bytes));
        return;
    }
    for (int64_t i = 0; i < blocks; ++i) std::memcpy(to + i * block_bytes, from + i * step, size_t(block_bytes));
}

int64_t read_integer(const std::byte *at, uint32_t type) {
    return type == TN_TYPE_ID_I32 ? *reinterpret_cast<const int32_t *>(at) : *reinterpret_cast<const int64_t *>(at);
}

void write_integer(std::byte *at, uint32_t type, int64_t value) {
    if (type == TN_TYPE_ID_I64) {
        *reinterpret_cast<int64_t *>(at) = value;
    } else {
        constexpr int64_t lo = std::numeric_limits<int32_t>::min(), hi = std::numeric_limits<int32_t>::max();
        *reinterpret_cast<int32_t *>(at) = int32_t(std::clamp(value, lo, hi));
    }
}

// Towards zero, saturated; NaN gives 0.
int64_t to_integer(float value) {
    if (std::isnan(value)) return 0;
    if (value >= 0x1p63f) return std::numeric_limits<int64_t>::max();
    if (value < -0x1p63f) return std::numeric_limits<int64_t>::min();
    return int64_t(value);
}

class ConvertKernel final : public Kernel {
public:
    ConvertKernel(const Problem &p, Features features)
        : x_(p.in[0]), y_(p.out[0]), cut_(Cut::of(x_.rows(), x_.last())) {
        if (!is_integer(x_.type)) decode_ = choose(*find_type(x_.type), features).decode;
        if (!is_integer(y_.type)) encode_ = choose_encode(y_.type, features);
    }

    int64_t pieces(int) const noexcept override { return cut_.pieces(); }

    void piece(const Args &args, int, int64_t i) const noexcept override {
        for (int64_t r = cut_.first(i); r < cut_.last(i); ++r) {
            row(args.in[0] + x_.row_offset(r), args.out[0] + y_.row_offset(r));
        }
    }

private:
    void row(const std::byte *from, std::byte *to) const noexcept {
        constexpr int64_t k_stretch = 256;  // whole blocks of every type
        const Block in = block_of(x_.type), out = block_of(y_.type);
        const int64_t step = x_.last_stride() * (x_.last() > 1 ? 1 : 0);
        for (int64_t first = 0; first < x_.last(); first += k_stretch) {
            const int64_t n = std::min(k_stretch, x_.last() - first);
            const std::byte *source = from + first / in.elements * step;
            std::byte *target = to + first / out.elements * out.bytes;
            if (is_integer(x_.type) && is_integer(y_.type)) {
                for (int64_t i = 0; i < n; ++i)
                    write_integer(target + i * out.bytes, y_.type, read_integer(source + i * step, x_.type));
                continue;
            }
            float values[k_stretch];
            if (is_integer(x_.type)) {
                for (int64_t i = 0; i < n; ++i) values[i] = float(read_integer(source + i * step, x_.type));
            } else if (x_.dense_rows()) {
                decode_(source, values, n);
            } else {
                for (int64_t i = 0; i < n; ++i) decode_(source + i * step, values + i, 1);
            }
            if (is_integer(y_.type)) {
                for (int64_t i = 0; i < n; ++i) write_integer(target + i * out.bytes, y_.type, to_integer(values[i]));
            } else {
                encode_(values, target, n);
            }
        }
    }

    Operand x_, y_;
    Cut cut_;
    DecodeFn decode_ = nullptr;
    EncodeFn encode_ = nullptr;
};

std::string refuse_copy(const Problem &p) {
    Check check(p);
    check.require([&] { return p.input(0) != nullptr && p.out.size() == 1; }, "input or output is missing");
    check.require([&] { return block_of(p.in[0].type).bytes > 0; }, "the input's type is unknown");
    check.require([&] { return p.out[0].same_shape(p.in[0]) && p.out[0].contiguous(); },
                  "the output isn't contiguous or differs in shape");
    check.require([&] { return block_of(p.in[0].type).elements == 1 || p.in[0].dense_rows(); },
                  "blocks of a row don't lie side by side");
    if (p.in.size() == 1 && p.out.size() == 1 && p.in[0].type != p.out[0].type) {
        check.require([&] { return is_integer(p.in[0].type) || find_type(p.in[0].type) != nullptr; },
                      [&] { return "the input's type, no integer, " + no_decoder(p.in[0].type); });
        check.require(
            [&] { return is_integer(p.out[0].type) || choose_encode(p.out[0].type, isa_reference) != nullptr; },
            "the output's type has no encoder here (types: f32, f16, bf16, i32, i64, q8_0)");
    }
    return check.reason();
}

std::unique_ptr<Kernel> make_copy(const Problem &p, Features features) {
    if (p.in[0].type != p.out[0].type) return std::make_unique<ConvertKernel>(p, features);
    return make_kernel(Cut::of(p.in[0].rows(), p.in[0].last()),
                       [x = p.in[0], y = p.out[0]](const Args &args, int64_t first, int64_t last) {
                           const Block block = block_of(x.type);
                           for (int64_t r = first; r < last; ++r) {
                               move_row(args.in[0] + x.row_offset(r), x.last_stride(), args.out[0] + y.row_offset(r),
                                        x.last() / block.elements, block.bytes);
                           }
                       });
}

std::string refuse_concat(const Problem &p) {
    const uint32_t axis = p.as<tn_params_concat>().axis;
    Check check(p);
    check.require([&] { return !p.in.empty() && p.out.size() == 1 && block_of(p.out[0].type).bytes > 0; },
                  "no input, or an unknown type");
    check.require([&] { return axis < p.out[0].rank && p.out[0].contiguous(); },
                  "the axis is outside, or the output strided");
    int64_t sum = 0;
    for (size_t i = 0; i < p.in.size() && check.reason().empty(); ++i) {
        check.in(i, {p.out[0].type});
        check.require([&] { return p.in[i].rank == p.out[0].rank; }, "inputs and output differ in rank");
        check.require([&] { return block_of(p.in[i].type).elements == 1 || p.in[i].dense_rows(); },
                      "blocks of a row don't lie side by side");
        for (uint32_t d = 0; d < p.out[0].rank; ++d) {
            check.require([&] { return d == axis || p.in[i].shape[d] == p.out[0].shape[d]; },
                          "inputs differ besides the axis");
        }
        if (check.reason().empty()) sum += p.in[i].shape[axis];
    }
    return check.require([&] { return sum == p.out[0].shape[axis]; }, "the inputs don't add up to the output").reason();
}

std::unique_ptr<Kernel> make_concat(const Problem &p, Features) {
    int64_t rows = 0;
    for (const Operand &part : p.in) rows += part.rows();
    return make_kernel(Cut::of(rows, p.out[0].last()), [in = p.in, y = p.out[0], axis = p.as<tn_params_concat>().axis](
                                                           const Args &args, int64_t first, int64_t last) {
        const Block block = block_of(y.type);
        int64_t offset = 0;  // of this input's first element along the axis, in bytes
        int64_t before = 0;  // rows of the inputs before
        for (size_t i = 0; i < in.size(); ++i) {
            Operand part = y;  // where this input goes
            part.shape = in[i].shape;
            for (int64_t r = std::max<int64_t>(0, first - before); r < std::min(in[i].rows(), last - before); ++r) {
                move_row(args.in[i] + in[i].row_offset(r), in[i].last_stride(),
                         args.out[0] + offset + part.row_offset(r), in[i].last() / block.elements, block.bytes);
            }
            const bool innermost = axis + 1 == y.rank;
            offset += innermost ? in[i].last() / block.elements * block.bytes : in[i].shape[axis] * y.stride[axis];
            before += in[i].rows();
        }
    });
}

constexpr Op k_ops[] = {{TN_OP_COPY, refuse_copy, make_copy}, {TN_OP_CONCAT, refuse_concat, make_concat}};

}  // namespace

std::span<const Op> ops_copy() {
    return k_ops;
}

}  // namespace tenon::cpu
