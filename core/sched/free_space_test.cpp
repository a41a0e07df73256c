#include "sched/free_space.h"

#include <doctest/doctest.h>

using namespace tenon;

namespace {

constexpr uint32_t k_soon = 1, k_later = 5, k_end = 9;
constexpr uint64_t k_no_limit = UINT64_MAX;

}  // namespace

TEST_CASE("free space: size classes rise with the size and tell small sizes apart") {
    uint32_t before = size_class(0);
    for (uint64_t size = 1; size < 5000; ++size) {
        const uint32_t now = size_class(size);
        CHECK(now >= before);
        if (size < 64) CHECK(now == before + 1);
        before = now;
    }
    CHECK(size_class(UINT64_MAX) == k_size_classes - 1);
}

TEST_CASE("free space: what is given back joins its free neighbours and is taken again before anything grows") {
    FreeSpace space(1, k_no_limit, 0);
    const uint32_t a = space.take(10, 1, k_end), b = space.take(10, 1, k_end), c = space.take(10, 1, k_end);
    space.take(10, 1, k_end);
    space.give_back(a);
    space.give_back(c);
    space.give_back(b);  // between two holes
    CHECK(space.place(space.take(30, 1, k_end)) == MemoryPlace{0, 0});
    CHECK(space.chunk_bytes() == std::vector<uint64_t>{40});
}

TEST_CASE("free space: the smallest hole that fits is taken, and a hole at the top grows") {
    FreeSpace space(1, k_no_limit, 0);
    const uint32_t large = space.take(50, 1, k_end);
    space.take(1, 1, k_end);
    const uint32_t small = space.take(20, 1, k_end);
    space.take(1, 1, k_end);
    const uint32_t top = space.take(5, 1, k_end);
    space.give_back(large);
    space.give_back(small);
    space.give_back(top);
    CHECK(space.place(space.take(20, 1, k_end)) == MemoryPlace{0, 51});
    CHECK(space.place(space.take(60, 1, k_end)) == MemoryPlace{0, 72});
    CHECK(space.chunk_bytes() == std::vector<uint64_t>{132});
}

TEST_CASE("free space: a block goes beside the neighbour that lives longer") {
    for (const bool below_lives_longer : {false, true}) {
        FreeSpace space(1, k_no_limit, 0);
        space.take(10, 1, below_lives_longer ? k_later : k_soon);
        const uint32_t middle = space.take(10, 1, k_soon);
        space.take(10, 1, below_lives_longer ? k_soon : k_later);
        space.give_back(middle);
        CHECK(space.place(space.take(4, 1, k_end)).offset == (below_lives_longer ? 10 : 16));
    }
    FreeSpace space(1, k_no_limit, 100);  // the border of what is expected lives for ever
    CHECK(space.place(space.take(10, 1, k_end)).offset == 0);
    CHECK(space.place(space.take(10, 1, k_end)).offset == 90);
}

TEST_CASE("free space: one chunk grows, the last; what older ones have left is used as holes") {
    FreeSpace space(1, 100, 0);
    const uint32_t first = space.take(60, 1, k_end);
    CHECK(space.place(space.take(50, 1, k_end)) == MemoryPlace{1, 0});
    space.give_back(first);
    CHECK(space.place(space.take(30, 1, k_end)) == MemoryPlace{0, 0});
    CHECK(space.place(space.take(60, 1, k_end)) == MemoryPlace{0, 40});
    CHECK(space.place(space.take(40, 1, k_end)) == MemoryPlace{1, 50});
    CHECK(space.chunk_bytes() == std::vector<uint64_t>{100, 90});
}

TEST_CASE("free space: alignments leave holes that others use, and a limit between two grains holds") {
    FreeSpace space(4, k_no_limit, 0);
    space.take(4, 4, k_end);
    CHECK(space.place(space.take(10, 64, k_end)) == MemoryPlace{0, 64});
    CHECK(space.place(space.take(60, 4, k_end)) == MemoryPlace{0, 4});
    FreeSpace odd(64, 100, 0);
    odd.take(64, 64, k_end);
    CHECK(odd.place(odd.take(37, 64, k_end)).chunk == 1);
    CHECK(odd.place(odd.take(36, 64, k_end)) == MemoryPlace{0, 64});
    CHECK(odd.place(odd.take(36, 64, k_end)) == MemoryPlace{1, 64});
}
