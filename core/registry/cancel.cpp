#include "registry/cancel.h"

#include <bit>
#include <new>

namespace tenon {

CancelTable::~CancelTable() {
    for (auto &chunk : chunks_) delete[] chunk.load(std::memory_order_relaxed);
}

CancelTable::Word *CancelTable::find(uint64_t token) const noexcept {
    if (token == 0 || token > count_.load(std::memory_order_acquire)) return nullptr;
    uint64_t index = token - 1;
    size_t chunk = size_t(std::bit_width(index / k_first_chunk + 1)) - 1;
    Word *words = chunks_[chunk].load(std::memory_order_acquire);
    return &words[index - k_first_chunk * ((uint64_t(1) << chunk) - 1)];
}

uint64_t CancelTable::add() noexcept {
    std::lock_guard lock(mutex_);
    uint64_t index = count_.load(std::memory_order_relaxed);
    size_t chunk = size_t(std::bit_width(index / k_first_chunk + 1)) - 1;
    if (chunk >= k_chunks) return 0;
    if (!chunks_[chunk].load(std::memory_order_relaxed)) {
        Word *words = new (std::nothrow) Word[k_first_chunk << chunk]{};
        if (!words) return 0;
        chunks_[chunk].store(words, std::memory_order_release);
    }
    count_.store(index + 1, std::memory_order_release);
    return index + 1;
}

}  // namespace tenon
