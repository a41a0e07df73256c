#include "registry/alloc_count.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <string>

static thread_local uint64_t t_allocations = 0;

uint64_t tenon::fixture::allocations_of_thread() {
    return t_allocations;
}

// The other forms of new and delete that the standard library has end in these. Not inlined: the compiler would see a
// free where it knows of a new, and warn.
#define TENON_NOINLINE __attribute__((noinline))
TENON_NOINLINE void *operator new(std::size_t bytes) {
    ++t_allocations;
    if (void *memory = std::malloc(bytes ? bytes : 1)) return memory;
    throw std::bad_alloc();
}
TENON_NOINLINE void operator delete(void *memory) noexcept {
    std::free(memory);
}
TENON_NOINLINE void operator delete(void *memory, std::size_t) noexcept {
    std::free(memory);
}

TEST_CASE("allocation counter: counts this thread's allocations") {
    const uint64_t before = tenon::fixture::allocations_of_thread();
    auto memory = std::make_unique<std::string>(100, 'x');
    CHECK(tenon::fixture::allocations_of_thread() >= before + 2);
}
