// Nothing throws out of core: what a library or the allocator throws becomes a status at the public entry points.
#pragma once

#include <exception>
#include <new>

#include "tenon/status.h"

namespace tenon {

/// Runs `body`, which answers a Status or a Result.
template <class Body>
auto no_throw(Body &&body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (const std::bad_alloc &) {
        return Status::out_of_memory("out of memory");  // short enough to need none
    } catch (const std::exception &error) {
        return Status::internal(error.what());
    }
}

}  // namespace tenon
