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

// All plain forms, the ones that don't throw too: a sanitizer brings its own for those that are left out, and a pair
// must not be mixed. Not inlined: the compiler would see a free where it knows of a new, and warn.
#define TENON_NOINLINE __attribute__((noinline))
TENON_NOINLINE void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
    ++t_allocations;
    return std::malloc(bytes ? bytes : 1);
}
TENON_NOINLINE void *operator new(std::size_t bytes) {
    if (void *memory = operator new(bytes, std::nothrow)) return memory;
    throw std::bad_alloc();
}
TENON_NOINLINE void operator delete(void *memory) noexcept {
    std::free(memory);
}
TENON_NOINLINE void operator delete(void *memory, std::size_t) noexcept {
    std::free(memory);
}
TENON_NOINLINE void operator delete(void *memory, const std::nothrow_t &) noexcept {
    std::free(memory);
}

TEST_CASE("allocation counter: counts this thread's allocations") {
    const uint64_t before = tenon::fixture::allocations_of_thread();
    auto memory = std::make_unique<std::string>(100, 'x');
    CHECK(tenon::fixture::allocations_of_thread() >= before + 2);
}
