#include "sched/pipeline.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include "base/no_throw.h"

namespace tenon {

Pipeline::Pipeline(const DeviceSet &devices, uint32_t slots, Logger log)
    : devices_(devices), log_(std::move(log)), routes_(devices.count()), flights_(slots) {
    for (Flight &flight : flights_) flight.first_step.resize(devices.count());
}

Result<std::unique_ptr<Pipeline>> Pipeline::create(const DeviceSet &devices, uint32_t slots, Logger log) {
    std::unique_ptr<Pipeline> pipeline(new Pipeline(devices, slots, std::move(log)));
    for (const auto &device : devices.list) {
        TENON_ASSIGN(auto stream, Stream::create(device));
        pipeline->lanes_.push_back(std::make_unique<Lane>(device, std::move(stream)));
    }
    return pipeline;
}

Pipeline::~Pipeline() {
    if (completed_ != submitted_) {
        failed_ = true;  // whatever isn't queued yet needn't be
        (void)collect();
    }
    for (auto &lane : lanes_) {
        if (!lane->thread.joinable()) continue;
        lane->stop = true;
        lane->posted.fetch_add(1, std::memory_order_release);
        lane->posted.notify_one();
        lane->thread.join();
    }
}

Status Pipeline::make_ready(const BoundGraph &graph) {
    const Compiled &compiled = *graph.compiled;
    for (uint32_t i = 0; i < compiled.schedule.copies().size(); ++i) {
        const Copy &copy = compiled.schedule.copies()[i];
        Lane &to = *lanes_[copy.to];
        TENON_TRY(routes_.probe(devices_, copy.from, copy.to, *to.stream, log_));
        const Located source = graph.locate(compiled.stored_of_value[copy.value], 0);
        const bool direct = routes_.direct(copy.from, copy.to) && source.buffer->type() == devices_.types[copy.from];
        if (!direct && !is_plain_host(source.buffer->type())) TENON_TRY(to.staging.reserve(to.device, copy.bytes));
    }
    return {};
}

// ---- Feeding a device -------------------------------------------------------------------------------------------------

Status Pipeline::start_thread(uint32_t device) {
    Lane &lane = *lanes_[device];
    if (lane.thread.joinable()) return {};
    lane.queue.resize(flights_.size());
    // The thread inherits the caller's signal mask: it blocks all, so that the host's handlers run on the host's threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    Status status = no_throw([&]() -> Status {
        lane.thread = std::thread([this, device] { feed(device); });
        return {};
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return std::move(status).in([&] { return fmt::format("a thread for {}", lane.device->name()); });
}

void Pipeline::feed(uint32_t device) {
    Lane &lane = *lanes_[device];
    for (uint64_t taken = 0;; ++taken) {
        uint64_t posted;
        while ((posted = lane.posted.load(std::memory_order_acquire)) == taken)
            lane.posted.wait(posted, std::memory_order_acquire);
        if (lane.stop && posted == taken + 1) return;
        run_part(*lane.queue[taken % lane.queue.size()], device);
    }
}

void Pipeline::run_part(Flight &flight, uint32_t device) {
    Lane &lane = *lanes_[device];
    if (!failed_.load(std::memory_order_acquire)) {
        Status status = no_throw([&] { return queue_part(flight, device); });
        if (!status.ok()) fail(std::move(status));
    }
    // However it went: nobody waits for a step that won't come.
    const uint64_t steps = flight.graph->compiled->order.lane(device).size() + 1;
    lane.done.store(flight.first_step[device] + steps, std::memory_order_release);
    lane.done.notify_all();
}

Status Pipeline::queue_part(Flight &flight, uint32_t device) {
    Lane &lane = *lanes_[device];
    TENON_TRY(set_borrowed(flight, device));
    uint64_t step = flight.first_step[device];
    for (uint32_t segment : flight.graph->compiled->order.lane(device)) {
        if (failed_.load(std::memory_order_acquire)) return {};
        TENON_TRY(queue_segment(flight, segment));
        lane.done.store(++step, std::memory_order_release);
        lane.done.notify_all();
    }
    return flight.graph->ends[flight.slot][device]->record(*lane.stream);
}

/// Borrowed inputs that the device reads itself; those that it gets as copies go straight there.
Status Pipeline::set_borrowed(Flight &flight, uint32_t device) {
    const BoundGraph &graph = *flight.graph;
    for (const BoundInput &input : graph.inputs) {
        const void *bytes = input.slots[flight.slot].borrowed;
        const uint32_t stored = graph.compiled->stored_of_value[input.value];
        if (!bytes || graph.compiled->stored[stored].storage.device != device) continue;
        const Located at = graph.locate(stored, flight.slot);
        const auto size = uint64_t(
            *canonical_bytes(graph.compiled->stored[stored].type, graph.compiled->stored[stored].shape.sizes()));
        TENON_TRY(lanes_[device]->stream->set(*at.buffer, at.value, 0, bytes, size));
    }
    return {};
}

/// Waits until a segment of another device has ended.
Status Pipeline::await(Flight &flight, uint32_t segment) {
    const Compiled &compiled = *flight.graph->compiled;
    const uint32_t device = compiled.schedule.segments()[segment].device;
    wait_for_step(*lanes_[device], flight.first_step[device] + compiled.order.position(segment) + 1);
    if (failed_.load(std::memory_order_acquire)) return {};
    return flight.graph->events[flight.slot][segment]->synchronize();
}

Status Pipeline::queue_segment(Flight &flight, uint32_t s) {
    const Compiled &compiled = *flight.graph->compiled;
    const Segment &segment = compiled.schedule.segments()[s];
    Lane &lane = *lanes_[segment.device];
    for (uint32_t i = segment.first_wait; i < segment.end_wait; ++i)
        TENON_TRY(await(flight, compiled.schedule.waits()[i]));
    if (failed_.load(std::memory_order_acquire)) return {};
    for (uint32_t copy : segment.copies())
        TENON_TRY(carry(*flight.graph, copy, flight.slot, *lane.stream, routes_, lane.staging));
    TENON_TRY(compiled.segments[s].plan->run(*lane.stream, flight.slot, flight.token));
    return compiled.awaited[s] ? flight.graph->events[flight.slot][s]->record(*lane.stream) : Status();
}

void Pipeline::wait_for_step(Lane &lane, uint64_t step) const {
    uint64_t done;
    while ((done = lane.done.load(std::memory_order_acquire)) < step) lane.done.wait(done, std::memory_order_acquire);
}

void Pipeline::fail(Status status) {
    const std::lock_guard lock(mutex_);
    if (failure_.ok()) failure_ = std::move(status);
    failed_.store(true, std::memory_order_release);
}

// ---- The application's side ----------------------------------------------------------------------------------------------

Status Pipeline::make_room() {
    const uint64_t slots = flights_.size();
    return submitted_ < slots ? Status() : wait(submitted_ + 1 - slots);
}

Result<uint64_t> Pipeline::submit(const std::shared_ptr<Executable> &keep, BoundGraph &graph, uint64_t token) {
    for (uint32_t device : graph.lanes) TENON_TRY(lanes_[device]->device->usable());
    const bool alone = graph.lanes.size() == 1;
    if (!alone)
        for (uint32_t device : graph.lanes) TENON_TRY(start_thread(device));
    Flight &next = flight(submitted_ + 1);
    next.keep = keep;
    next.graph = &graph;
    next.slot = graph.take_slot(submitted_ + 1);
    next.token = token;
    for (uint32_t device : graph.lanes) {
        Lane &lane = *lanes_[device];
        next.first_step[device] = lane.asked;
        lane.asked += graph.compiled->order.lane(device).size() + 1;
        lane.may_be_queued = true;
    }
    ++submitted_;
    if (alone && lanes_[graph.lanes[0]]->done.load(std::memory_order_acquire) == next.first_step[graph.lanes[0]]) {
        run_part(next, graph.lanes[0]);  // nothing to wait for: the caller's thread feeds the stream
        return submitted_;
    }
    for (uint32_t device : graph.lanes) {
        Lane &lane = *lanes_[device];
        lane.queue[lane.posted.load(std::memory_order_relaxed) % lane.queue.size()] = &next;
        lane.posted.fetch_add(1, std::memory_order_release);
        lane.posted.notify_one();
    }
    return submitted_;
}

Status Pipeline::wait_one(Flight &flight) {
    for (uint32_t device : flight.graph->lanes) {
        Lane &lane = *lanes_[device];
        wait_for_step(lane, flight.first_step[device] + flight.graph->compiled->order.lane(device).size() + 1);
        if (failed_.load(std::memory_order_acquire)) return collect();
        if (!flight.graph->ends[flight.slot][device]->synchronize().ok()) return collect();
    }
    return {};
}

Status Pipeline::wait(uint64_t number) {
    if (number > submitted_) return Status::invalid_argument(fmt::format("run {} hasn't been submitted", number));
    while (completed_ < number) {
        Flight &next = flight(completed_ + 1);
        TENON_TRY(wait_one(next));
        next.keep.reset();
        ++completed_;
    }
    if (completed_ == submitted_)
        for (auto &lane : lanes_) lane->may_be_queued = false;
    return {};
}

std::string Pipeline::where(uint32_t device) {
    for (uint64_t number = completed_ + 1; number <= submitted_; ++number) {
        const Compiled &compiled = *flight(number).graph->compiled;
        const auto lane = compiled.order.lane(device);
        if (lane.empty()) continue;
        Segment all = compiled.schedule.segments()[lane.front()];
        all.end_node = compiled.schedule.segments()[lane.back()].end_node;
        return fmt::format("{} ({})", devices_.list[device]->name(), segment_label(compiled.graph(), all));
    }
    return devices_.list[device]->name();
}

/// Ends everything that is in flight. The stream on which it began has the words for it; whoever waited for that stream
/// only knows that it failed.
Status Pipeline::collect() {
    failed_.store(true, std::memory_order_release);
    Status status;
    for (auto &lane : lanes_) wait_for_step(*lane, lane->asked);
    for (uint32_t device = 0; device < lanes_.size(); ++device) {
        Lane &lane = *lanes_[device];
        if (!lane.may_be_queued) continue;
        Status end = lane.stream->synchronize();
        lane.may_be_queued = false;
        if (status.ok() && !end.ok()) status = std::move(end).in([&] { return where(device); });
    }
    {
        const std::lock_guard lock(mutex_);
        if (status.ok()) status = std::move(failure_);
        failure_ = {};
    }
    if (status.ok()) status = Status::internal("a run failed, and no device says why");
    for (; completed_ < submitted_; ++completed_) flight(completed_ + 1).keep.reset();
    failed_.store(false, std::memory_order_release);
    return status;
}

}  // namespace tenon
