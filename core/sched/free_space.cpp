#include "sched/free_space.h"

#include <algorithm>

namespace tenon {

uint32_t FreeSpace::new_block(uint64_t offset, uint64_t bytes, uint32_t chunk, uint32_t below, uint32_t above) {
    uint32_t block;
    if (spare_.empty()) {
        block = uint32_t(blocks_.size());
        blocks_.emplace_back();
    } else {
        block = spare_.back();
        spare_.pop_back();
    }
    blocks_[block] = {offset, bytes, chunk, 0, below, above};
    if (below != k_none) blocks_[below].above = block;
    if (above != k_none) blocks_[above].below = block;
    if (above == k_none && chunk + 1 == highest_.size()) top_ = block;
    return block;
}

/// Takes a block out of its chunk's list; its room has gone to a neighbour.
void FreeSpace::drop_block(uint32_t block) {
    const Block &b = blocks_[block];
    if (b.below != k_none) blocks_[b.below].above = b.above;
    if (b.above != k_none) blocks_[b.above].below = b.below;
    if (top_ == block) top_ = b.below;
    spare_.push_back(block);
}

void FreeSpace::list(uint32_t block) {
    Block &b = blocks_[block];
    const uint32_t size = size_class(b.bytes), word = size / 32, bit = 1u << size % 32;
    b.free = true;
    b.previous = k_none;
    b.next = masks_[word] & bit ? heads_[size] : k_none;
    if (b.next != k_none) blocks_[b.next].previous = block;
    heads_[size] = block;
    masks_[word] |= bit;
    class_words_ |= uint64_t(1) << word;
}

void FreeSpace::unlist(uint32_t block) {
    Block &b = blocks_[block];
    b.free = false;
    if (b.next != k_none) blocks_[b.next].previous = b.previous;
    if (b.previous != k_none) {
        blocks_[b.previous].next = b.next;
        return;
    }
    const uint32_t size = size_class(b.bytes), word = size / 32;
    heads_[size] = b.next;
    if (b.next != k_none) return;
    masks_[word] &= ~(1u << size % 32);
    if (!masks_[word]) class_words_ &= ~(uint64_t(1) << word);
}

/// The first class from `from` on that has blocks, or k_none.
uint32_t FreeSpace::next_class(uint32_t from) const {
    if (from >= k_size_classes) return k_none;
    uint32_t word = from / 32;
    if (const uint32_t here = masks_[word] & ~0u << from % 32) return word * 32 + uint32_t(std::countr_zero(here));
    const uint64_t later = class_words_ & ~uint64_t(1) << word;
    if (!later) return k_none;
    word = uint32_t(std::countr_zero(later));
    return word * 32 + uint32_t(std::countr_zero(masks_[word]));
}

bool FreeSpace::fits(const Block &block, uint64_t bytes, uint64_t alignment) const {
    const uint64_t start = round_up(block.offset, alignment);
    return start + round_up(bytes, grain_) <= block.end() && start + bytes <= limit_;
}

/// The smallest free block that fits among the first few of about that size; failing that, one from a class of which
/// every block fits.
uint32_t FreeSpace::find(uint64_t bytes, uint64_t alignment) const {
    const uint64_t size = round_up(bytes, grain_);
    uint32_t best = k_none;
    uint32_t looks = 16;  // enough for the few sizes of a real graph; a constant, so that many holes cost nothing
    for (uint32_t c = next_class(size_class(size)); c != k_none && looks; c = next_class(c + 1)) {
        for (uint32_t block = heads_[c]; block != k_none && looks; block = blocks_[block].next, --looks) {
            const Block &b = blocks_[block];
            if (!fits(b, bytes, alignment) || (best != k_none && b.bytes >= blocks_[best].bytes)) continue;
            best = block;
            if (b.bytes == size) return best;
        }
        if (best != k_none) return best;
    }
    if (best != k_none) return best;
    const uint32_t c = next_class(size_class(size + (alignment - grain_)) + 1);
    return c == k_none ? k_none : heads_[c];
}

/// What is left of the last chunk below the limit becomes a hole, since from now on another chunk grows.
void FreeSpace::close_chunk() {
    const uint64_t end = blocks_[top_].end(), most = limit_ + limit_slack_;
    if (end >= most) return;
    if (blocks_[top_].free) {
        unlist(top_);
        blocks_[top_].bytes = most - blocks_[top_].offset;
        list(top_);
    } else {
        list(new_block(end, most - end, blocks_[top_].chunk, top_, k_none));
    }
}

/// A free, unlisted block that fits, on top of the last chunk or in a new one.
uint32_t FreeSpace::extend(uint64_t bytes, uint64_t alignment) {
    const uint64_t size = round_up(bytes, grain_);
    if (top_ != k_none) {
        const Block top = blocks_[top_];
        const uint64_t base = top.free ? top.offset : top.end(), start = round_up(base, alignment);
        if (start + bytes <= limit_) {
            if (!top.free) return new_block(base, start + size - base, top.chunk, top_, k_none);
            unlist(top_);
            blocks_[top_].bytes = std::max(top.bytes, start + size - base);
            return top_;
        }
        close_chunk();
    }
    const uint64_t still = expected_ > opened_bytes_ ? expected_ - opened_bytes_ : 0;
    const uint64_t open = std::max(size, round_up(std::min(still, limit_), grain_));
    opened_bytes_ += open;
    highest_.push_back(0);
    return new_block(0, open, uint32_t(highest_.size() - 1), k_none, k_none);
}

/// Cuts the taken block from the low or the high end of a free, unlisted one. It goes beside the neighbour that lives
/// longer (a chunk's border lives for ever): when the other one dies, its room joins what is left here.
uint32_t FreeSpace::carve(uint32_t block, uint64_t bytes, uint64_t alignment, uint32_t last) {
    const uint64_t size = round_up(bytes, grain_);
    const Block hole = blocks_[block];
    uint64_t start = round_up(hole.offset, alignment);
    if (hole.above == k_none || (hole.below != k_none && blocks_[hole.above].last > blocks_[hole.below].last)) {
        const uint64_t high = std::min(hole.end() - size, limit_ - bytes);
        if (hole.below != k_none) start = std::max(start, round_down(high, alignment));
    }
    if (start > hole.offset) list(new_block(hole.offset, start - hole.offset, hole.chunk, hole.below, block));
    if (start + size < hole.end())
        list(new_block(start + size, hole.end() - start - size, hole.chunk, block, blocks_[block].above));
    Block &taken = blocks_[block];
    taken.offset = start;
    taken.bytes = size;
    taken.last = last;
    uint64_t &highest = highest_[taken.chunk];
    if (start + bytes > highest) {
        bytes_ += start + bytes - highest;
        highest = start + bytes;
    }
    return block;
}

uint32_t FreeSpace::take(uint64_t bytes, uint64_t alignment, uint32_t last) {
    uint32_t block = find(bytes, alignment);
    if (block == k_none)
        block = extend(bytes, alignment);
    else
        unlist(block);
    return carve(block, bytes, alignment, last);
}

void FreeSpace::give_back(uint32_t block) {
    const uint32_t below = blocks_[block].below, above = blocks_[block].above;
    if (above != k_none && blocks_[above].free) {
        unlist(above);
        blocks_[block].bytes += blocks_[above].bytes;
        drop_block(above);
    }
    if (below != k_none && blocks_[below].free) {
        unlist(below);
        blocks_[below].bytes += blocks_[block].bytes;
        drop_block(block);
        block = below;
    }
    list(block);
}

}  // namespace tenon
