// A team of threads that stays alive between runs: the caller is thread 0, the others wait in place.
//
// Threads meet by flags, each on its own cache line: a worker raises its own, thread 0 gathers them and raises one that
// releases all. Waiting spins for some microseconds, the length of a usual gap between groups, then sleeps in the
// kernel; so an idle team costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::cpu {

class Team;

// One thread's place in a run. Lives in the team; used by its own thread only.
class Crew {
public:
    unsigned thread() const noexcept { return thread_; }
    unsigned threads() const noexcept { return threads_; }

    // Waits until every thread has called it as often. What was written before is visible after. Starts a new count for
    // next(). Every thread of the team must pass the same barriers.
    void barrier() noexcept;

    // Claims a number: 0, 1, 2 ... over all threads since the last barrier. For work in pieces: which thread computes a
    // piece varies from run to run, so a piece's result must not depend on it.
    int64_t next() noexcept;

    // This thread's share [first, second) of n pieces, in equal contiguous parts.
    std::pair<int64_t, int64_t> share(int64_t n) const noexcept {
        return {n * thread_ / threads_, n * (thread_ + 1) / threads_};
    }

private:
    friend class Team;
    Team *team_ = nullptr;
    unsigned thread_ = 0, threads_ = 1;
    int32_t round_ = 0;
};

// [any thread]; runs and resizes take turns.
class Team {
public:
    // Called once by every thread; must not throw.
    using Work = void (*)(void *context, Crew &crew);

    static constexpr unsigned max_threads = 1024;

    Team() { seat_all(1); }
    ~Team() { stop(); }
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    // Makes the team this large (1 to max_threads), thread 0 included. Returns an empty string, or why a thread could
    // not be made; the team then has one thread only.
    std::string resize(unsigned threads);

    unsigned threads() const noexcept { return threads_.load(std::memory_order_relaxed); }

    // Runs work on all threads and returns when all are done. The caller is thread 0.
    void run(Work work, void *context) noexcept;

private:
    friend class Crew;
    struct alignas(128) Flag {
        std::atomic<int32_t> value{0};
        void raise(int32_t to) noexcept;
        void await_change(int32_t from) const noexcept;
    };
    struct alignas(128) Seat {
        Flag arrived;
        Crew crew;
    };

    void worker(Seat &seat) noexcept;
    void stop() noexcept;
    void seat_all(unsigned threads);

    std::mutex turn_;
    std::atomic<unsigned> threads_{1};
    std::unique_ptr<Seat[]> seats_;
    std::vector<std::thread> workers_;
    Flag start_, released_;
    alignas(128) std::atomic<int64_t> claimed_{0};
    Work work_ = nullptr;  // written before start_ is raised
    void *context_ = nullptr;
};

// Physical cores that this process may use: its affinity mask, hyperthreads of a core counted once, bounded by the CPU
// quota of its control group. At least 1.
unsigned usable_cores();

}  // namespace tenon::cpu
