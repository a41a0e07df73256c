// The fused group rms_norm + products: the norm's output and its quantised form stay in the group's scratch, made once
// for all products that read it. Computes exactly what the nodes compute one by one.
#pragma once

#include "kernel.h"

namespace tenon::cpu {

// norm: an rms_norm with contiguous output; products: linear nodes whose input 0 is that output. None was refused. At
// least one product. The kernel's inputs are x, the norm's weight (null if it has none), then each product's weight;
// its outputs are the products' outputs in the same order.
std::unique_ptr<Kernel> make_norm_linear(const Problem &norm, const std::vector<Problem> &products, Features features);

}  // namespace tenon::cpu
