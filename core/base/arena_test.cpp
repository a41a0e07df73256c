#include "tenon/arena.h"

#include <doctest/doctest.h>

#include <random>

using namespace tenon;

TEST_CASE("arena: pieces are aligned, apart, and stay when it grows and moves") {
    const uint32_t seed = std::random_device()();
    CAPTURE(seed);
    std::mt19937 random(seed);
    struct Piece {
        uint8_t *place;
        size_t bytes;
        uint8_t mark;
    };
    std::vector<Piece> pieces;
    Arena arena;
    for (int i = 0; i < 5000; ++i) {
        const size_t alignment = size_t(1) << random() % 5;
        const size_t bytes = random() % 100 == 0 ? random() % (3 << 20) / 8 : random() % 200;
        auto *place = static_cast<uint8_t *>(arena.take(bytes, alignment));
        CHECK(reinterpret_cast<uintptr_t>(place) % alignment == 0);
        std::fill_n(place, bytes, uint8_t(i));
        pieces.push_back({place, bytes, uint8_t(i)});
        if (i == 2500) arena = Arena(std::move(arena));
    }
    for (const Piece &piece : pieces)
        CHECK(std::all_of(piece.place, piece.place + piece.bytes, [&](uint8_t b) { return b == piece.mark; }));
}

TEST_CASE("arena: what is larger than a chunk doesn't cost the rest of one") {
    Arena arena;
    auto *a = static_cast<std::byte *>(arena.take(8, 8));
    auto *large = static_cast<std::byte *>(arena.take(size_t(5) << 20, 8));
    large[0] = large[(size_t(5) << 20) - 1] = std::byte(1);
    CHECK(static_cast<std::byte *>(arena.take(8, 8)) == a + 8);
}

TEST_CASE("arena: text ends in a 0 and joins its pieces") {
    Arena arena;
    const Name name = arena.join({"blk.", "", "3.q"});
    CHECK(name == "blk.3.q");
    CHECK(std::strlen(name.c_str()) == name.size());
    CHECK(std::string(name) == "blk.3.q");
    CHECK(*arena.join({}).c_str() == 0);
    CHECK(*Name().c_str() == 0);
}

TEST_CASE("arena, flat array: more than there can be throws and changes nothing") {
    Arena arena;
    CHECK_THROWS_AS(arena.take(PTRDIFF_MAX, 8), std::bad_alloc);
    CHECK_THROWS_AS(arena.take_array<uint64_t>(SIZE_MAX / 4), std::bad_alloc);
    CHECK(arena.join({"x"}) == "x");
    FlatArray<uint64_t> array;
    array.push_back(7);
    CHECK_THROWS_AS(array.reserve(SIZE_MAX / 2), std::bad_alloc);
    CHECK(array.size() == 1);
    CHECK(array[0] == 7);
}

TEST_CASE("flat array: grows by one and by many, from itself, moves and trims") {
    FlatArray<uint32_t> array;
    for (uint32_t i = 0; i < 1000; ++i) array.push_back(i);
    while (array.size() < 5000) array.push_back(array[0]);  // a reference into what is moved
    const uint32_t more[] = {1, 2, 3};
    array.append(more);
    array.append({});
    array.trim();
    FlatArray<uint32_t> moved = std::move(array);
    CHECK(array.empty());
    CHECK(moved.size() == 5003);
    for (uint32_t i = 0; i < moved.size(); ++i) {
        const uint32_t expected = i < 1000 ? i : i < 5000 ? 0 : i - 4999;
        if (moved[i] != expected) FAIL("element ", i);
    }
    moved.push_back(9);
    CHECK(moved[5003] == 9);
}
