// The lists of rows of the inner kernels that more than one op uses; each with its plain reference.
#pragma once

#include "isa.h"
#include "rows/rows.h"

namespace tenon::cpu {

QuantizeQ8Fn choose_quantize_q8(Features have) noexcept;
TileF32Fn choose_tile_f32(Features have) noexcept;
MaxFn choose_max(Features have) noexcept;
ExpSumFn choose_exp_sum(Features have) noexcept;
WeightedSumFn choose_weighted_sum(Features have) noexcept;
UnaryFn choose_tanh(Features have) noexcept;

}  // namespace tenon::cpu
