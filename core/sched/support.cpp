#include "sched/support.h"

#include <fmt/format.h>

namespace tenon {
namespace {

Result<std::vector<NodeSupport>> ask_device(const Graph &graph, const std::shared_ptr<Device> &device,
                                            const Lowering::Describe &describe, Decompositions &formulas) {
    std::vector<NodeSupport> rows(graph.nodes().size());
    Lowering whole(graph, describe);
    for (NodeId node = 0; node < rows.size(); ++node) whole.add(node);
    TENON_ASSIGN(const auto words, device->supports(whole.graph().view()));
    for (NodeId node = 0; node < rows.size(); ++node) {
        rows[node].claimed = words[node] & TN_SUPPORT_YES;
        rows[node].offload = words[node] & TN_SUPPORT_OFFLOAD;
    }

    Lowering parts(graph, describe);
    for (NodeId node = 0; node < rows.size(); ++node) {
        if (rows[node].claimed) continue;
        TENON_ASSIGN(const Decomposition *formula, formulas.get(node));
        if (formula) parts.add(node, *formula), rows[node].expands = true;
    }
    if (parts.nodes().empty()) return rows;
    TENON_ASSIGN(const auto part_words, device->supports(parts.graph().view()));
    for (size_t i = 0; i < part_words.size(); ++i)
        if (!(part_words[i] & TN_SUPPORT_YES)) rows[parts.nodes()[i]].expands = false;
    return rows;
}

}  // namespace

Result<bool> TypeSupport::supports(const std::shared_ptr<Device> &device, const BufferType &type) {
    for (const Row &row : rows_)
        if (row.device == device.get() && row.type == type) return row.answer;
    TENON_ASSIGN(const bool answer, device->supports(type));
    rows_.push_back({device.get(), type, answer});
    return answer;
}

Result<SupportTable> SupportTable::ask(const Graph &graph, const DeviceList &devices, const BoundTypes &bound,
                                       TypeSupport &types, Decompositions &formulas) {
    SupportTable table;
    for (const auto &device : devices) {
        // The device's answer about a type must be known before the graph is written: a description can't fail.
        std::vector<tn_buffer_type_info> infos(bound.size());
        for (ValueId id = 0; id < bound.size(); ++id) {
            if (!bound[id]) continue;
            TENON_ASSIGN(const bool usable, types.supports(device, *bound[id]));
            if (usable) infos[id] = bound[id]->info();
        }
        auto describe = [&](ValueId base) {
            return Lowering::Base{graph.values()[base].flags, infos[base].struct_size ? &infos[base] : nullptr};
        };
        TENON_ASSIGN(auto rows, ask_device(graph, device, describe, formulas));
        table.rows_.push_back(std::move(rows));
    }
    return table;
}

std::string SupportTable::reason(const Graph &graph, const std::shared_ptr<Device> &device, NodeId node,
                                 Decompositions &formulas) const {
    auto describe = [&](ValueId base) { return Lowering::Base{graph.values()[base].flags, nullptr}; };
    Lowering one(graph, describe);
    one.add(node);
    auto text = [&](const Result<std::string> &answer) {
        return answer.ok() ? *answer : std::string("it doesn't support its memory");
    };
    std::string why = text(device->support_reason(one.graph().view(), 0));
    const auto formula = formulas.get(node);
    if (!formula.ok() || !*formula) return why;
    Lowering parts(graph, describe);
    parts.add(node, **formula);
    const auto words = device->supports(parts.graph().view());
    for (size_t i = 0; words.ok() && i < words->size(); ++i)
        if (!((*words)[i] & TN_SUPPORT_YES))
            return fmt::format("{}; and of its decomposition, {}: {}", why, (*formula)->nodes[i].name,
                               text(device->support_reason(parts.graph().view(), i)));
    return why;
}

}  // namespace tenon
