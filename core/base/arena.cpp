#include "tenon/arena.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tenon {

void advise_huge_pages([[maybe_unused]] void *block, [[maybe_unused]] size_t bytes) noexcept {
#ifdef __linux__
    // Whole huge pages only: what else lies in the first and last of them isn't ours to speak for. A refusal is no loss.
    const uintptr_t start = (reinterpret_cast<uintptr_t>(block) + k_huge_page - 1) & ~(k_huge_page - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(block) + bytes) & ~(k_huge_page - 1);
    if (start < end) (void)madvise(reinterpret_cast<void *>(start), end - start, MADV_HUGEPAGE);
#endif
}

void *Arena::take_from_new(size_t bytes) {
    constexpr size_t first = 512, largest = size_t(1) << 20;
    // No array is as large; some allocators (sanitizers') would end the process rather than refuse.
    if (bytes > PTRDIFF_MAX / 2) throw std::bad_alloc();
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
