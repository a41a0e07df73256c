// rms_norm over rows, for the op and for the fused group that products read from.
#pragma once

#include "kernel.h"
#include "rows/choose.h"

namespace tenon::cpu {

RmsNormFn choose_rms_norm(Features have) noexcept;

}  // namespace tenon::cpu
