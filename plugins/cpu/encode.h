// From F32 to the types that tensors may be stored in: copies and KV caches.
#pragma once

#include "isa.h"

namespace tenon::cpu {

// dst = x, n elements (whole blocks), rounded to nearest, ties to even. dst at any address.
using EncodeFn = void (*)(const float *x, void *dst, int64_t n);

// For f32, f16, bf16, q8_0; null for other types.
EncodeFn choose_encode(uint32_t type, Features have) noexcept;

}  // namespace tenon::cpu
