// The ready-made event. Every record starts a round; rounds may end in another order than they began (records on
// several streams), and each keeps its own outcome for as long as somebody may still ask for it.
#ifndef TENON_PLUGIN_EVENT_HPP
#define TENON_PLUGIN_EVENT_HPP

#include <chrono>

#include "tenon/plugin/plan_bind.hpp"

namespace tenon::plugin {
namespace detail {

inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

/// Busy waiting: true as soon as ready() holds, false after ns nanoseconds.
template <class Ready>
bool spin(uint64_t ns, Ready &&ready) noexcept {
    if (ready()) return true;
    if (ns == 0) return false;
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(ns);
    do {
        for (int i = 0; i < 16; ++i) {
            if (ready()) return true;
            pause();
        }
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

/// A point in time, or never for TN_FOREVER and what lies beyond the clock.
class Deadline {
public:
    explicit Deadline(uint64_t timeout_ns)
        : never_(timeout_ns > kLongest),
          at_(std::chrono::steady_clock::now() +
              std::chrono::nanoseconds(never_ ? 0 : static_cast<int64_t>(timeout_ns))) {}

    /// Until ready() or the deadline; whether ready() holds.
    template <class Ready>
    bool wait(std::condition_variable &cond, std::unique_lock<std::mutex> &lock, Ready &&ready) const {
        if (!never_) return cond.wait_until(lock, at_, ready);
        cond.wait(lock, ready);
        return true;
    }

private:
    static constexpr uint64_t kLongest = uint64_t{1} << 60;  // 36 years
    bool never_;
    std::chrono::steady_clock::time_point at_;
};

}  // namespace detail

class RoundEvent final : public Event {
public:
    explicit RoundEvent(Device &device) : Event(device) {
        open_.reserve(16);
        failed_.reserve(4);
        enlist();
    }
    ~RoundEvent() override { forget(); }

    void record(Stream &stream) override;
    void wait(Stream &stream) override;
    void synchronize(uint64_t timeout_ns) override { await(enter(), timeout_ns); }

    // For the stream. A round that was begun is ended once; a round that was entered is left once, by await or leave.
    uint64_t begin_round() {
        const std::lock_guard lock(mutex_);
        open_.push_back(newest_ + 1);
        return ++newest_;
    }
    /// The newest round, which the caller is going to wait for.
    uint64_t enter() noexcept {
        const std::lock_guard lock(mutex_);
        ++waiters_;
        return newest_;
    }
    void leave(uint64_t) noexcept {
        const std::lock_guard lock(mutex_);
        left();
    }
    void end_round(uint64_t round, const detail::Failure &failure) noexcept {
        const std::lock_guard lock(mutex_);
        std::erase(open_, round);
        if (waiters_ == 0) forget_old();
        if (failure.status != TN_OK) keep(round, failure);
        ended_.fetch_add(1, std::memory_order_release);
        cond_.notify_all();
    }
    /// Throws the round's failure, TN_TIMEOUT, or TN_DEVICE_LOST at once (D29).
    void await(uint64_t round, uint64_t timeout_ns) {
        detail::Failure outcome;
        {
            std::unique_lock lock(mutex_);
            auto over = [&] { return !is_open(round) || device().lost(); };
            if (!over() && timeout_ns != 0) {
                const detail::Deadline deadline(timeout_ns);
                spin(lock, over, std::min(timeout_ns, spin_ns_));
                deadline.wait(cond_, lock, over);
            }
            outcome = outcome_of(round);
            left();
        }
        device().check_alive();
        if (outcome.status != TN_OK) throw Error(outcome.status, outcome.text);
    }

private:
    struct Failed {
        uint64_t round;
        detail::Failure failure;
    };

    void wake() noexcept override {
        const std::lock_guard lock(mutex_);
        cond_.notify_all();
    }
    bool is_open(uint64_t round) const noexcept { return std::find(open_.begin(), open_.end(), round) != open_.end(); }
    /// Without the lock, looks again whenever a round has ended.
    template <class Over>
    void spin(std::unique_lock<std::mutex> &lock, Over &over, uint64_t ns) {
        uint64_t seen = ended_.load(std::memory_order_relaxed);
        lock.unlock();
        detail::spin(ns, [&] {
            const uint64_t now = ended_.load(std::memory_order_acquire);
            if (now == seen) return false;
            seen = now;
            const std::lock_guard again(mutex_);
            return over();
        });
        lock.lock();
    }
    detail::Failure outcome_of(uint64_t round) const noexcept {
        detail::Failure outcome;
        if (is_open(round)) {
            outcome.set(TN_TIMEOUT, "the event hasn't come yet");
            return outcome;
        }
        for (const Failed &f : failed_) {
            if (f.round == round) outcome = f.failure;
        }
        return outcome;
    }
    void left() noexcept {
        if (--waiters_ == 0) forget_old();
    }
    /// With nobody inside, only the newest round can still be asked for.
    void forget_old() noexcept {
        std::erase_if(failed_, [&](const Failed &f) { return f.round != newest_; });
    }
    void keep(uint64_t round, const detail::Failure &failure) noexcept {
        try {
            failed_.push_back({round, failure});
        } catch (const std::bad_alloc &) {
            failed_.front() = {round, failure};  // four failed rounds are kept in any case
        }
    }

    const uint64_t spin_ns_ = device().stream_options().spin_ns;
    std::mutex mutex_;
    std::condition_variable cond_;
    std::atomic<uint64_t> ended_{0};
    uint64_t newest_ = 0;         // round of the last record
    uint64_t waiters_ = 0;        // entered and not left
    std::vector<uint64_t> open_;  // rounds that haven't ended
    std::vector<Failed> failed_;
};

}  // namespace tenon::plugin
#endif
