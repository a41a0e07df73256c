#include "sched/shown.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tenon {

ShownRun::ShownRun(Pipeline &pipeline, const std::shared_ptr<Executable> &keep, BoundGraph &graph, uint64_t token)
    : pipeline_(pipeline), graph_(graph), flight_(pipeline.flight(pipeline.submitted_ + 1)) {
    flight_ = {keep, &graph, graph.take_slot(pipeline.submitted_ + 1), token, std::move(flight_.first_step)};
    ++pipeline.submitted_;
}

Status ShownRun::synchronize(uint32_t device) {
    Lane &lane = *pipeline_.lanes_[device];
    if (!std::exchange(lane.may_be_queued, false)) return {};
    return lane.stream->synchronize().in([&] { return pipeline_.where(device); });
}

Status ShownRun::run_segment(uint32_t s) {
    const Compiled &compiled = *graph_.compiled;
    const Segment &segment = compiled.schedule.segments()[s];
    Lane &lane = *pipeline_.lanes_[segment.device];
    for (uint32_t device : graph_.lanes)
        if (device != segment.device) TENON_TRY(synchronize(device));
    lane.may_be_queued = true;
    for (uint32_t copy : segment.copies())
        TENON_TRY(carry(graph_, copy, flight_.slot, *lane.stream, pipeline_.routes_, lane.staging));
    return compiled.segments[s].plan->run(*lane.stream, flight_.slot, flight_.token);
}

Result<NodeId> ShownRun::next() {
    if (!std::exchange(is_started_, true)) {
        for (uint32_t device : graph_.lanes) {
            pipeline_.lanes_[device]->may_be_queued = true;
            TENON_TRY(pipeline_.set_borrowed(flight_, device));
        }
    }
    const Schedule &schedule = graph_.compiled->schedule;
    while (next_segment_ < schedule.segments().size()) {
        const Segment &segment = schedule.segments()[next_segment_];
        TENON_TRY(run_segment(next_segment_++));
        const NodeId last = segment.end_node - 1;
        if (!std::ranges::binary_search(schedule.observed(), last)) continue;
        TENON_TRY(synchronize(segment.device));
        return last;
    }
    return k_no_value;
}

Status ShownRun::finish() {
    Status status;
    if (std::exchange(has_ended_, true)) return status;
    for (uint32_t device = 0; device < pipeline_.lanes_.size(); ++device) {
        Status end = synchronize(device);
        if (status.ok()) status = std::move(end);
    }
    pipeline_.completed_ = pipeline_.submitted_;
    flight_.keep.reset();
    return status;
}

ShownRun::Outputs::Outputs(const ShownRun &run, NodeId node)
    : graph_(run.graph_), slot_(run.flight_.slot), node_(run.graph_.compiled->graph().nodes()[node]) {}

Status ShownRun::Outputs::check(size_t index) const {
    if (index < count()) return {};
    return Status::invalid_argument(fmt::format("node '{}' has no output {}", node_.name, index));
}

Located ShownRun::Outputs::locate(size_t index) const {
    return graph_.locate(graph_.compiled->stored_of_value[node_.outputs[index]], slot_);
}

Status ShownRun::Outputs::read(size_t index, std::span<std::byte> bytes, uint64_t offset) const {
    TENON_TRY(check(index));
    const Located at = locate(index);
    return at.buffer->get(at.value, offset, bytes.data(), bytes.size());
}

Status ShownRun::Outputs::write(size_t index, std::span<const std::byte> bytes, uint64_t offset) {
    TENON_TRY(check(index));
    const Located at = locate(index);
    return at.buffer->set(at.value, offset, bytes.data(), bytes.size());
}

}  // namespace tenon
