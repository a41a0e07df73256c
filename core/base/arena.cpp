#include "tenon/arena.h"

namespace tenon {

void *Arena::take_from_new(size_t bytes) {
    constexpr size_t first = 512, largest = size_t(1) << 20;
    const size_t doublings = std::min<size_t>(chunks_.size(), 11);
    const size_t size = std::max(std::min(first << doublings, largest), bytes);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(size));
    std::byte *place = chunks_.back().get();
    // What is larger than a chunk has one of its own; small things go on where they were.
    if (bytes > largest) return place;
    next_ = place + bytes;
    left_ = size - bytes;
    return place;
}

}  // namespace tenon
