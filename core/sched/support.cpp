#include "sched/support.h"

#include <fmt/format.h>

namespace tenon {

Status SupportTable::ask_device(uint32_t index, const std::shared_ptr<Device> &device, const Graph &graph,
                                const Lowering::Describe &describe, Decompositions &formulas) {
    const auto nodes = NodeId(graph.nodes().size());
    Lowering lowering(graph);
    lowering.begin(describe);
    for (NodeId node = 0; node < nodes; ++node) lowering.add(node);
    TENON_ASSIGN(const auto words, device->supports(lowering.graph().view()));
    bool all = true;
    for (NodeId node = 0; node < nodes; ++node) {
        uint8_t &bits = at(index, node).bits;
        if (words[node] & TN_SUPPORT_YES) bits |= NodeSupport::k_claimed;
        if (words[node] & TN_SUPPORT_OFFLOAD) bits |= NodeSupport::k_offload;
        all = all && (bits & NodeSupport::k_claimed);
    }
    if (all) return {};

    lowering.begin(describe);
    for (NodeId node = 0; node < nodes; ++node) {
        if (at(index, node).claimed()) continue;
        TENON_ASSIGN(const Decomposition *formula, formulas.get(node));
        if (!formula) continue;
        lowering.add(node, *formula);
        at(index, node).bits |= NodeSupport::k_expands;
    }
    if (lowering.nodes().empty()) return {};
    TENON_ASSIGN(const auto part_words, device->supports(lowering.graph().view()));
    for (size_t i = 0; i < part_words.size(); ++i)
        if (!(part_words[i] & TN_SUPPORT_YES)) at(index, lowering.nodes()[i]).bits &= uint8_t(~NodeSupport::k_expands);
    return {};
}

Result<SupportTable> SupportTable::ask(const Graph &graph, const DeviceSet &devices, const BoundTypes &bound,
                                       const MemoryReach &reach, Decompositions &formulas) {
    SupportTable table(devices.count(), graph.nodes().size());
    std::vector<tn_buffer_type_info> infos;
    for (const BufferType &type : bound.types) infos.push_back(type.info());
    for (uint32_t d = 0; d < devices.count(); ++d) {
        auto describe = [&](ValueId base) {
            const bool in_place = reach.is_bound(base) && reach.reaches(d, reach.bound[base]);
            return Lowering::Base{graph.values()[base].flags, in_place ? &infos[bound.of_value[base]] : nullptr};
        };
        TENON_TRY(table.ask_device(d, devices.list[d], graph, describe, formulas));
    }
    return table;
}

std::string support_reason(const Graph &graph, const Device &device, NodeId node, Decompositions &formulas) {
    auto describe = [&](ValueId base) { return Lowering::Base{graph.values()[base].flags, nullptr}; };
    Lowering lowering(graph);
    lowering.begin(describe);
    lowering.add(node);
    auto text = [&](const Result<std::string> &answer) {
        return answer.ok() ? *answer : std::string("it doesn't support its memory");
    };
    std::string why = text(device.support_reason(lowering.graph().view(), 0));
    const auto formula = formulas.get(node);
    if (!formula.ok()) return fmt::format("{}; {}", why, formula.status().message());
    if (!*formula) {
        const std::string &refused = formulas.why_none(node);
        return refused.empty() ? why : fmt::format("{}; {}", why, refused);
    }
    lowering.begin(describe);
    lowering.add(node, **formula);
    const auto words = device.supports(lowering.graph().view());
    for (size_t i = 0; words.ok() && i < words->size(); ++i)
        if (!((*words)[i] & TN_SUPPORT_YES))
            return fmt::format("{}; and of its decomposition, {}: {}", why, (*formula)->nodes[i].name,
                               text(device.support_reason(lowering.graph().view(), i)));
    return why;
}

}  // namespace tenon
