// A schedule as text: devices, segments with their copies, every node with device and reason, memory.
#include <fmt/format.h>

#include <iterator>

#include "tenon/schedule.h"

namespace tenon {

std::string Schedule::to_text() const {
    std::string text;
    auto out = std::back_inserter(text);
    auto device = [&](uint32_t index) { return index == k_no_value ? std::string("-") : devices_[index]->name(); };
    for (size_t s = 0; s < segments_.size(); ++s) {
        const Segment &segment = segments_[s];
        fmt::format_to(out, "segment {} on {}: {} nodes", s, device(segment.device), segment.nodes().size());
        for (uint32_t i = segment.first_wait; i < segment.end_wait; ++i)
            fmt::format_to(out, "{} {}", i == segment.first_wait ? ", after segment" : " and", waits_[i]);
        text += '\n';
        for (uint32_t copy : segment.copies())
            fmt::format_to(out, "  copy {} from {}: {} bytes\n", graph_.values()[copies_[copy].value].name,
                           device(copies_[copy].from), copies_[copy].bytes);
        for (NodeId id : segment.nodes()) {
            const Node &node = graph_.nodes()[id];
            fmt::format_to(out, "  {:<6} {:<16} {}\n", reason_code(nodes_[id].reason), graph_.op(node).name, node.name);
        }
    }
    for (size_t d = 0; d < memory_.size(); ++d) {
        const DeviceMemory &m = memory_[d];
        fmt::format_to(out,
                       "{}: arena {} bytes (at least {}), {} x {} bytes for inputs, outputs and values that leave it, "
                       "constants {} bytes\n",
                       devices_[d]->name(), m.arena.bytes, m.arena.lower_bound_bytes, m.slots, m.slot.bytes,
                       m.constant_bytes);
    }
    return text;
}

}  // namespace tenon
