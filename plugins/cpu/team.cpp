#include "team.h"

#include <chrono>
#include <system_error>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace tenon::cpu {
namespace {

constexpr std::chrono::microseconds k_spin{50};

inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#else
    std::this_thread::yield();
#endif
}

}  // namespace

void Team::Flag::raise(int32_t to) noexcept {
    // Sequentially consistent: the store must not pass notify's look at who waits, or a sleeper would be missed.
    value.store(to, std::memory_order_seq_cst);
    value.notify_all();
}

void Team::Flag::await_change(int32_t from) const noexcept {
    for (int i = 0; i < 128; ++i) {
        if (value.load(std::memory_order_acquire) != from) return;
        relax();
    }
    const auto until = std::chrono::steady_clock::now() + k_spin;
    do {
        for (int i = 0; i < 32; ++i) {
            if (value.load(std::memory_order_acquire) != from) return;
            relax();
        }
    } while (std::chrono::steady_clock::now() < until);
    while (value.load(std::memory_order_acquire) == from) value.wait(from, std::memory_order_acquire);
}

void Crew::barrier() noexcept {
    const int32_t before = round_;
    round_ = int32_t(uint32_t(round_) + 1);
    if (threads_ == 1) {
        team_->claimed_.store(0, std::memory_order_relaxed);
        return;
    }
    if (thread_ != 0) {
        team_->seats_[thread_].arrived.raise(round_);
        team_->released_.await_change(before);
        return;
    }
    for (unsigned i = 1; i < threads_; ++i) team_->seats_[i].arrived.await_change(before);
    team_->claimed_.store(0, std::memory_order_relaxed);
    team_->released_.raise(round_);
}

int64_t Crew::next() noexcept {
    return team_->claimed_.fetch_add(1, std::memory_order_relaxed);
}

void Team::seat_all(unsigned threads) {
    seats_ = std::make_unique<Seat[]>(threads);
    for (unsigned i = 0; i < threads; ++i) {
        seats_[i].crew.team_ = this;
        seats_[i].crew.thread_ = i;
        seats_[i].crew.threads_ = threads;
    }
    start_.value.store(0);
    released_.value.store(0);
    claimed_.store(0);
    work_ = nullptr;
    threads_.store(threads);
}

std::string Team::resize(unsigned threads) {
    std::lock_guard turn(turn_);
    if (threads == threads_.load()) return {};
    stop();
    seat_all(threads);
    try {
        workers_.reserve(threads - 1);
        for (unsigned i = 1; i < threads; ++i) {
            workers_.emplace_back([this, i] { worker(seats_[i]); });
        }
    } catch (const std::system_error &error) {
        const std::string made = std::to_string(workers_.size() + 1);
        stop();
        seat_all(1);
        return "no more than " + made + " of " + std::to_string(threads) + " threads could be started: " + error.what();
    }
    return {};
}

void Team::worker(Seat &seat) noexcept {
    for (int32_t seen = 0;;) {
        start_.await_change(seen);
        seen = int32_t(uint32_t(seen) + 1);
        if (work_ == nullptr) return;
        work_(context_, seat.crew);
        seat.crew.barrier();
    }
}

void Team::run(Work work, void *context) noexcept {
    std::lock_guard turn(turn_);
    Crew &crew = seats_[0].crew;
    if (crew.threads_ > 1) {
        work_ = work;
        context_ = context;
        start_.raise(int32_t(uint32_t(start_.value.load(std::memory_order_relaxed)) + 1));
    }
    work(context, crew);
    crew.barrier();
}

void Team::stop() noexcept {
    if (workers_.empty()) return;
    work_ = nullptr;
    start_.raise(int32_t(uint32_t(start_.value.load(std::memory_order_relaxed)) + 1));
    for (std::thread &worker : workers_) worker.join();
    workers_.clear();
}

}  // namespace tenon::cpu
