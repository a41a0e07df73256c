// Counts what is alive of a loaded plugin, and shuts the door for unload: one atomic word, so that no call into a
// plugin can slip in between "nothing is alive" and "unloaded", and no lock is held across the call (H01).
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

namespace tenon {

/// Shut when made. Any thread.
class LiveCount {
public:
    void open() noexcept { count_.store(0, std::memory_order_release); }

    /// Counts one more object or call in flight; false where the plugin isn't loaded (any more).
    bool enter() noexcept {
        int64_t now = count_.load(std::memory_order_relaxed);
        while (now >= 0)
            if (count_.compare_exchange_weak(now, now + 1, std::memory_order_acquire, std::memory_order_relaxed))
                return true;
        return false;
    }
    void leave() noexcept { count_.fetch_sub(1, std::memory_order_release); }

    /// True where nothing was alive: from now on `enter` answers false, until `open`.
    bool shut() noexcept {
        int64_t none = 0;
        return count_.compare_exchange_strong(none, k_shut, std::memory_order_acq_rel);
    }
    /// What is alive now; 0 while shut.
    int64_t count() const noexcept {
        int64_t now = count_.load(std::memory_order_relaxed);
        return now < 0 ? 0 : now;
    }

private:
    static constexpr int64_t k_shut = std::numeric_limits<int64_t>::min();
    std::atomic<int64_t> count_{k_shut};
};

/// Counts a call in flight for its scope.
class LiveGuard {
public:
    explicit LiveGuard(LiveCount &live) : live_(live), entered_(live.enter()) {}
    ~LiveGuard() {
        if (entered_) live_.leave();
    }
    LiveGuard(const LiveGuard &) = delete;
    LiveGuard &operator=(const LiveGuard &) = delete;
    explicit operator bool() const noexcept { return entered_; }
    /// The count stays: what the call made is alive, and leaves when it is freed.
    void keep() noexcept { entered_ = false; }

private:
    LiveCount &live_;
    bool entered_;
};

}  // namespace tenon
