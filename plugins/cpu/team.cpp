#include "team.h"

#include <chrono>
#include <exception>

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

constexpr uint32_t unclaimed(uint64_t state) noexcept {
    return uint32_t(state);
}

}  // namespace

template <class Ready>
void Team::wait_until(Ready ready) const noexcept {
    for (int i = 0; i < 64; ++i) {
        if (ready()) return;
        relax();
    }
    const auto until = std::chrono::steady_clock::now() + k_spin;
    do {
        for (int i = 0; i < 32; ++i) {
            if (ready()) return;
            relax();
        }
    } while (std::chrono::steady_clock::now() < until);
    for (;;) {
        // The signal is read first: a change after that ends the wait, one before it is seen by ready.
        const int32_t seen = signal_.load(std::memory_order_seq_cst);
        if (ready()) return;
        signal_.wait(seen, std::memory_order_seq_cst);
    }
}

void Team::wake() noexcept {
    signal_.fetch_add(1, std::memory_order_seq_cst);
    signal_.notify_all();
}

bool Team::help() noexcept {
    uint64_t state = state_.load(std::memory_order_acquire);
    while (unclaimed(state) != 0) {
        if (!state_.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel, std::memory_order_acquire))
            continue;
        job_->piece(int64_t(total_ - unclaimed(state)));
        if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) advance();
        return true;
    }
    return false;
}

void Team::advance() noexcept {
    const uint32_t pieces = uint32_t(job_->next());
    if (pieces == 0) {
        done_.store(true, std::memory_order_release);
        wake();
        return;
    }
    total_ = pieces;
    unfinished_.store(pieces, std::memory_order_relaxed);
    const uint64_t phase = (state_.load(std::memory_order_relaxed) >> 32) + 1;
    state_.store(phase << 32 | pieces, std::memory_order_release);
    // The only piece of a phase is for the thread that is here; nobody is woken for it.
    if (pieces > 1 && threads() > 1) wake();
}

void Team::worker() noexcept {
    const auto ready = [this] {
        return unclaimed(state_.load(std::memory_order_acquire)) != 0 || stopping_.load(std::memory_order_acquire);
    };
    while (!stopping_.load(std::memory_order_acquire)) {
        if (!help()) wait_until(ready);
    }
}

void Team::run(Job &job) noexcept {
    std::lock_guard turn(turn_);
    const auto ready = [this] {
        return unclaimed(state_.load(std::memory_order_acquire)) != 0 || done_.load(std::memory_order_acquire);
    };
    job_ = &job;
    done_.store(false, std::memory_order_relaxed);
    advance();
    while (!done_.load(std::memory_order_acquire)) {
        if (!help()) wait_until(ready);
    }
}

std::string Team::resize(unsigned threads) {
    std::lock_guard turn(turn_);
    if (threads == this->threads()) return {};
    stop();
    try {
        workers_.reserve(threads - 1);
        for (unsigned i = 1; i < threads; ++i) workers_.emplace_back([this] { worker(); });
    } catch (const std::exception &error) {  // of the system, or for want of memory
        const size_t made = workers_.size() + 1;
        stop();  // before the text, which takes memory too: the team is whole whatever comes
        return "no more than " + std::to_string(made) + " of " + std::to_string(threads) +
               " threads could be started: " + error.what();
    }
    threads_.store(threads);
    return {};
}

void Team::stop() noexcept {
    stopping_.store(true, std::memory_order_release);
    wake();
    for (std::thread &worker : workers_) worker.join();
    workers_.clear();
    threads_.store(1);
    stopping_.store(false, std::memory_order_release);
}

}  // namespace tenon::cpu
