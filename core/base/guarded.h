// The host's side of functions that plugins call: nothing may be thrown across that border.
#pragma once

#include "tenon/abi.h"

namespace tenon {

/// Runs a host function's body. What it throws can only be a want of memory, and is answered as that.
template <class F>
tn_status guarded(F body) noexcept {
    try {
        return body();
    } catch (...) {
        return TN_OUT_OF_MEMORY;
    }
}

}  // namespace tenon
