// A schedule as text: segments with their copies, every node with device and reason, what each device holds.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "sched/schedule_print.h"

namespace tenon {

std::vector<HeldBytes> held_bytes(const Schedule &schedule) {
    std::vector<HeldBytes> held(schedule.devices().size());
    for (ValueId id : schedule.graph().leaves()) {
        const Value &value = schedule.graph().values()[id];
        const uint32_t device = schedule.values()[id].device;
        if (device == k_no_value || schedule.values()[id].reason != Reason::dst) continue;
        const uint64_t bytes = uint64_t(canonical_bytes(value.type, value.shape.sizes()).value_or(0));
        (value.flags & TN_VALUE_STATE ? held[device].states : held[device].weights) += bytes;
    }
    return held;
}

std::string device_name(const Schedule &schedule, uint32_t device) {
    return device == k_no_value ? "-" : schedule.devices()[device]->name();
}

namespace {

using Out = std::back_insert_iterator<std::string>;

void print_segment(const Schedule &schedule, size_t number, size_t width, Out out) {
    const Segment &segment = schedule.segments()[number];
    const Graph &graph = schedule.graph();
    const std::string device = device_name(schedule, segment.device);
    fmt::format_to(out, "segment {} on {}: {} nodes", number, device, segment.nodes().size());
    for (uint32_t i = segment.first_wait; i < segment.end_wait; ++i)
        fmt::format_to(out, "{} {}", i == segment.first_wait ? ", after segment" : " and", schedule.waits()[i]);
    fmt::format_to(out, "\n");
    for (uint32_t i : segment.copies()) {
        const Copy &copy = schedule.copies()[i];
        fmt::format_to(out, "  {:<6}  {:<{}}  copy {} from {}: {} bytes\n", reason_code(Reason::cpy), device, width,
                       printable(graph.values()[copy.value].name), device_name(schedule, copy.from), copy.bytes);
    }
    for (NodeId id : segment.nodes()) {
        const Node &node = graph.nodes()[id];
        fmt::format_to(out, "  {:<6}  {:<{}}  {:<16} {}\n", reason_code(schedule.nodes()[id].reason), device, width,
                       printable(graph.op(node).name), printable(node.name));
    }
}

/// What lies where before anything runs, by device and code.
void print_leaves(const Schedule &schedule, Out out) {
    std::map<std::pair<uint32_t, Reason>, size_t> counts;
    for (ValueId id : schedule.graph().leaves()) ++counts[{schedule.values()[id].device, schedule.values()[id].reason}];
    for (const auto &[key, count] : counts)
        fmt::format_to(out, "{}: {} of inputs, weights and states by {}\n", device_name(schedule, key.first), count,
                       reason_code(key.second));
}

}  // namespace

std::string Schedule::to_text() const {
    std::string text;
    const Out out = std::back_inserter(text);
    size_t width = 0;
    for (const auto &device : devices_) width = std::max(width, device->name().size());
    for (size_t s = 0; s < segments_.size(); ++s) print_segment(*this, s, width, out);
    print_leaves(*this, out);
    const auto held = held_bytes(*this);
    for (size_t d = 0; d < memory_.size(); ++d) {
        const DeviceMemory &m = memory_[d];
        fmt::format_to(out,
                       "{}: weights {} bytes, states {} bytes, arena {} bytes (at least {}), {} x {} bytes for inputs, "
                       "outputs and values that leave it, constants {} bytes\n",
                       devices_[d]->name(), held[d].weights, held[d].states, m.arena.bytes, m.arena.lower_bound_bytes,
                       m.slots, m.slot.bytes, m.constant_bytes);
    }
    return text;
}

}  // namespace tenon
