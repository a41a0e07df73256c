// Runs in flight: each device's stream is fed in order, by a thread of its own where more than one device is in play,
// so that nobody waits for a device that he needn't wait for.
//
// A run goes to the devices that have segments of it. Each feeder works through its device's segments: it waits for the
// ends of segments of other devices (Schedule::waits), queues the copies that the segment needs and then the segment.
// At most `slots` runs are in flight, and what a run shares with the run `slots` before, it shares with nobody else:
// whoever starts a run waits for that one. What runs share beyond that, a device's arena, only its own stream touches.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "sched/transfer.h"

namespace tenon {

/// A device as a session uses it.
class Lane {
public:
    Lane(std::shared_ptr<Device> device, std::unique_ptr<Stream> stream)
        : device(std::move(device)), stream(std::move(stream)) {}

    std::shared_ptr<Device> device;
    std::unique_ptr<Stream> stream;
    Staging staging;
    /// Steps that its feeder has done, one a segment and one for a run's end; and those that were asked for.
    std::atomic<uint64_t> done{0};
    uint64_t asked = 0;
    bool may_be_queued = false;  // something has been queued since the stream was last known to be empty

    // Of the feeding thread:
    std::thread thread;
    std::vector<struct Flight *> queue;  // a ring of as many as can be in flight
    std::atomic<uint64_t> posted{0};
    bool stop = false;  // read after a post
};

/// One run on its way.
struct Flight {
    std::shared_ptr<Executable> keep;  // freed when the place in the ring is used again, or nothing is in flight
    BoundGraph *graph = nullptr;
    uint32_t slot = 0;
    uint64_t token = 0;
    std::vector<uint64_t> first_step;  // per device: Lane::asked before it
};

class Pipeline {
public:
    static Result<std::unique_ptr<Pipeline>> create(const DeviceSet &devices, uint32_t slots, Logger log);
    ~Pipeline();

    /// Tries routes and reserves staging for a graph's copies. Nothing is in flight.
    Status make_ready(const BoundGraph &graph);

    /// Waits until one more run can start: after that, the next slot of every graph is free. A failure that hasn't been
    /// told is told.
    Status make_room();
    /// After make_room. Answers the run's number.
    Result<uint64_t> submit(const std::shared_ptr<Executable> &keep, BoundGraph &graph, uint64_t token);
    /// Waits for a run and those before. A failure ends all that is in flight and is told once.
    Status wait(uint64_t number);
    Status wait_all() { return wait(submitted_); }

    uint64_t submitted() const { return submitted_; }

private:
    friend class ShownRun;
    Pipeline(const DeviceSet &devices, uint32_t slots, Logger log);
    Flight &flight(uint64_t number) { return flights_[number % flights_.size()]; }
    Status start_thread(uint32_t device);
    void feed(uint32_t device);
    void run_part(Flight &flight, uint32_t device);
    Status queue_part(Flight &flight, uint32_t device);
    Status queue_segment(Flight &flight, uint32_t segment);
    Status set_borrowed(Flight &flight, uint32_t device);
    Status await(Flight &flight, uint32_t segment);
    void wait_for_step(Lane &lane, uint64_t step) const;
    Status wait_one(Flight &flight);
    void fail(Status status);
    Status collect();
    std::string where(uint32_t device);

    const DeviceSet devices_;
    const Logger log_;
    Routes routes_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<Flight> flights_;  // a ring of `slots`
    uint64_t submitted_ = 0, completed_ = 0;
    std::atomic<bool> failed_{false};
    std::mutex mutex_;
    Status failure_;  // the first, guarded by mutex_
};

}  // namespace tenon
