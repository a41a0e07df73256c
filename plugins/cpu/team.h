// A team of threads that stays alive between runs: the caller is one of them, the others wait in place.
//
// Work comes in phases, a phase in pieces; whoever has time claims the next piece, and whoever ends a phase's last
// piece starts the next phase. So nobody waits for a thread that the system has put aside, unless it holds a piece; and
// phases of one piece (most small ops) follow each other on one thread without any meeting.
//
// Waiting spins for some microseconds, the length of a usual phase, then sleeps in the kernel: an idle team costs
// nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tenon::cpu {

// What a team runs. Lives until Team::run has returned.
class Job {
public:
    virtual ~Job() = default;
    // Goes to the next phase and returns its number of pieces, at least 1 and below 2^32; 0 ends the run. Called by one
    // thread of the team at a time, when all pieces before are done and visible.
    virtual int64_t next() noexcept = 0;
    // Computes a piece of the present phase. Pieces run at the same time, on any thread: what they compute must not
    // depend on who computes them.
    virtual void piece(int64_t i) noexcept = 0;
};

// [any thread]; runs and resizes take turns.
class Team {
public:
    static constexpr unsigned max_threads = 1024;

    Team() = default;
    ~Team() { stop(); }
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    // Makes the team this large (1 to max_threads), the caller of run included. Returns an empty string, or why a
    // thread could not be made; the team then has one thread only.
    std::string resize(unsigned threads);

    unsigned threads() const noexcept { return threads_.load(std::memory_order_relaxed); }

    // Runs the job to its end. What it wrote is visible to the caller afterwards.
    void run(Job &job) noexcept;

private:
    void worker() noexcept;
    void stop() noexcept;
    bool help() noexcept;     // claims a piece and computes it; false: there is none
    void advance() noexcept;  // starts the next phase
    void wake() noexcept;
    template <class Ready>
    void wait_until(Ready ready) const noexcept;

    std::mutex turn_;
    std::vector<std::thread> workers_;
    std::atomic<unsigned> threads_{1};
    std::atomic<bool> stopping_{false};
    // A phase. Upper half of state_: its number, so that a claim never meets another phase; lower half: pieces not yet
    // claimed. total_ and job_ are written before state_ and read after a claim, which keeps the phase from ending.
    alignas(128) std::atomic<uint64_t> state_{0};
    alignas(128) std::atomic<int64_t> unfinished_{0};
    alignas(128) std::atomic<int32_t> signal_{0};  // changes whenever sleepers should look again
    std::atomic<bool> done_{true};
    Job *job_ = nullptr;
    uint32_t total_ = 0;
};

// Physical cores that this process may use: its affinity mask, hyperthreads of a core counted once, bounded by the CPU
// quota of its control group. At least 1.
unsigned usable_cores();

}  // namespace tenon::cpu
