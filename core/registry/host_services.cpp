#include "registry/host_services.h"

namespace tenon {

bool MemoryAccount::take(uint64_t bytes) noexcept {
    uint64_t now = now_.load(std::memory_order_relaxed), sum;
    do {
        if (__builtin_add_overflow(now, bytes, &sum) || (limit_ && sum > limit_)) return false;
    } while (!now_.compare_exchange_weak(now, sum, std::memory_order_relaxed));
    allocations_.fetch_add(1, std::memory_order_relaxed);
    uint64_t peak = peak_.load(std::memory_order_relaxed);
    while (peak < sum && !peak_.compare_exchange_weak(peak, sum, std::memory_order_relaxed)) {
    }
    return true;
}

}  // namespace tenon
