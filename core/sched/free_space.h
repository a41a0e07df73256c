// The free space of a memory plan while time goes by: take a block, give it back, always in constant time.
//
// All blocks of a chunk, free or taken, form a list by offset, so that a free neighbour is found without searching. Free
// blocks hang in lists by size class (32 to each power of two) under two levels of bit masks, as in the TLSF allocator
// (Masmano, Ripoll, Crespo and Real, "TLSF: a new dynamic memory allocator for real-time systems", ECRTS 2004). So
// 10,000 holes cost what 10 do, and all lies in one array.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sched/memory.h"

namespace tenon {

/// The size class of `value`: exact below 32, then 32 steps to each power of two. Rises with the value.
inline uint32_t size_class(uint64_t value) {
    if (value < 32) return uint32_t(value);
    const uint32_t width = uint32_t(std::bit_width(value));
    return (width - 5) * 32 + uint32_t(value >> (width - 6) & 31);
}
inline constexpr uint32_t k_size_classes = 60 * 32;

inline uint64_t round_up(uint64_t value, uint64_t alignment) {
    return (value + alignment - 1) & ~(alignment - 1);
}
inline uint64_t round_down(uint64_t value, uint64_t alignment) {
    return value & ~(alignment - 1);
}

/// Single use, one thread. All numbers in bytes.
class FreeSpace {
public:
    static constexpr uint32_t k_none = UINT32_MAX;

    /// `grain`: a power of two that divides every alignment; blocks are whole grains. `limit`: what a chunk may hold.
    /// `expected`: what the whole plan needs if all goes well; up to there room counts as there from the start.
    FreeSpace(uint64_t grain, uint64_t limit, uint64_t expected)
        : grain_(grain),
          limit_(limit),
          limit_slack_(limit == UINT64_MAX ? 0 : round_up(limit, grain) - limit),
          expected_(expected) {}

    /// Takes `bytes` (not 0) that will be given back after time `last`, and answers the block.
    uint32_t take(uint64_t bytes, uint64_t alignment, uint32_t last);
    void give_back(uint32_t block);

    MemoryPlace place(uint32_t block) const { return {blocks_[block].chunk, blocks_[block].offset}; }
    /// A word for the owner of a taken block, who may keep blocks in lists of its own.
    uint32_t &link(uint32_t block) { return blocks_[block].next; }
    /// Per chunk, the highest end of all that was ever taken.
    const std::vector<uint64_t> &chunk_bytes() const { return highest_; }
    /// Their sum.
    uint64_t bytes() const { return bytes_; }

private:
    struct Block {
        uint64_t offset, bytes;
        uint32_t chunk;
        uint32_t last;                              // of a taken block
        uint32_t below = k_none, above = k_none;    // neighbours by offset
        uint32_t previous = k_none, next = k_none;  // in the list of its size class
        bool free = false;
        uint64_t end() const { return offset + bytes; }
    };

    uint32_t new_block(uint64_t offset, uint64_t bytes, uint32_t chunk, uint32_t below, uint32_t above);
    void drop_block(uint32_t block);
    void list(uint32_t block);
    void unlist(uint32_t block);
    uint32_t next_class(uint32_t from) const;
    bool fits(const Block &block, uint64_t bytes, uint64_t alignment) const;
    uint32_t find(uint64_t bytes, uint64_t alignment) const;
    uint32_t extend(uint64_t bytes, uint64_t alignment);
    void close_chunk();
    uint32_t carve(uint32_t block, uint64_t bytes, uint64_t alignment, uint32_t last);

    const uint64_t grain_, limit_, limit_slack_, expected_;
    std::vector<Block> blocks_;
    std::vector<uint32_t> spare_;    // dropped blocks, to be used again
    std::vector<uint64_t> highest_;  // per chunk
    uint64_t bytes_ = 0;             // their sum
    uint64_t opened_bytes_ = 0;      // what the chunks were opened with
    uint32_t top_ = k_none;          // the highest block of the last chunk: only that chunk still grows
    uint64_t class_words_ = 0;       // bit w: masks_[w] isn't 0
    std::array<uint32_t, k_size_classes / 32> masks_ = {};
    std::array<uint32_t, k_size_classes> heads_;  // valid where the class's bit is set
};

}  // namespace tenon
