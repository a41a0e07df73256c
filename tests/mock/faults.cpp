#include "faults.h"

#include <chrono>
#include <thread>

namespace mock {

void Faults::pause() {
    const uint64_t most = delay_us.load(std::memory_order_relaxed);
    if (most == 0) return;
    const uint64_t z = random.fetch_add(kMixStep, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::microseconds(mix(z) % (most + 1)));
}

void Faults::check(Call call) {
    const auto index = static_cast<size_t>(call);
    int64_t left = left_[index].load(std::memory_order_relaxed);
    while (left > 0 && !left_[index].compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    if (left == 1) tenon::plugin::fail(kFailPoints[index].status, kFailPoints[index].text);
}

bool Faults::set_countdown(std::string_view option, int64_t calls) {
    for (size_t i = 0; i < kFailPoints.size(); ++i) {
        if (kFailPoints[i].option != option) continue;
        left_[i] = calls;
        return true;
    }
    return false;
}

std::optional<int64_t> Faults::countdown(std::string_view option) const {
    for (size_t i = 0; i < kFailPoints.size(); ++i) {
        if (kFailPoints[i].option == option) return left_[i].load();
    }
    return std::nullopt;
}

}  // namespace mock
