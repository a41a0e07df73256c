// For tests: how often this thread has allocated through operator new. The test program's own operators count.
#pragma once

#include <cstdint>

namespace tenon::fixture {

uint64_t allocations_of_thread();

}  // namespace tenon::fixture
