// A schedule as one JSON object.
#include <nlohmann/json.hpp>

#include "sched/schedule_print.h"

namespace tenon {
namespace {

using Json = nlohmann::ordered_json;

std::string text(std::string_view name) {
    return std::string(name);
}

Json devices_of(const Schedule &schedule) {
    const auto held = held_bytes(schedule);
    Json out = Json::array();
    for (size_t d = 0; d < schedule.devices().size(); ++d) {
        const DeviceMemory &m = schedule.memory()[d];
        out.push_back({{"name", schedule.devices()[d]->name()},
                       {"weight_bytes", held[d].weights},
                       {"state_bytes", held[d].states},
                       {"bytes", m.bytes()},
                       {"arena_bytes", m.arena.bytes},
                       {"arena_lower_bound_bytes", m.arena.lower_bound_bytes},
                       {"arena_chunks", m.arena.chunks},
                       {"slots", m.slots},
                       {"slot_bytes", m.slot.bytes},
                       {"constant_bytes", m.constant_bytes}});
    }
    return out;
}

Json segments_of(const Schedule &schedule) {
    Json out = Json::array();
    for (const Segment &segment : schedule.segments()) {
        Json waits = Json::array(), copies = Json::array();
        for (uint32_t i = segment.first_wait; i < segment.end_wait; ++i) waits.push_back(schedule.waits()[i]);
        for (uint32_t i : segment.copies()) {
            const Copy &copy = schedule.copies()[i];
            copies.push_back({{"value", text(schedule.graph().values()[copy.value].name)},
                              {"from", device_name(schedule, copy.from)},
                              {"bytes", copy.bytes},
                              {"code", reason_code(Reason::cpy)}});
        }
        out.push_back({{"device", device_name(schedule, segment.device)},
                       {"first_node", segment.first_node},
                       {"nodes", segment.nodes().size()},
                       {"after", std::move(waits)},
                       {"copies", std::move(copies)}});
    }
    return out;
}

Json assigned(const Schedule &schedule, std::string_view name, const Assignment &at) {
    return {{"name", text(name)}, {"device", device_name(schedule, at.device)}, {"code", reason_code(at.reason)}};
}

}  // namespace

std::string Schedule::to_json() const {
    Json nodes = Json::array(), values = Json::array();
    for (NodeId id = 0; id < nodes_.size(); ++id) {
        nodes.push_back(assigned(*this, graph_.nodes()[id].name, nodes_[id]));
        nodes.back()["op"] = text(graph_.op(graph_.nodes()[id]).name);
    }
    for (ValueId id : graph_.leaves()) values.push_back(assigned(*this, graph_.values()[id].name, values_[id]));
    const Json all{{"devices", devices_of(*this)},
                   {"segments", segments_of(*this)},
                   {"nodes", std::move(nodes)},
                   {"values", std::move(values)}};
    return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tenon
