// Scheduling problems drawn by hand, for tests: a graph, and beside it what devices would have answered.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sched/order.h"

namespace tenon {

/// Devices are letters in order of priority: "abc" has c as its fallback. Until told otherwise each computes in memory of
/// its own, which no other can use, and claims every node.
class Sketch {
public:
    explicit Sketch(std::string_view devices) : devices_(devices) {
        for (char device : devices_) kinds_.push_back(std::string(1, device));
        for (char device : devices_) users_[std::string(1, device)] = std::string(1, device);
    }

    GraphBuilder build;

    // The ops that sketches are made of, all on f32 [2].
    ValueId input(std::string name) { return build.input(std::move(name), DType::f32, {2}); }
    /// In memory of this kind: a device's letter, or a name that `memory` has declared.
    ValueId weight(std::string name, std::string kind) {
        return bound(build.weight(std::move(name), DType::f32, {2}), std::move(kind));
    }
    ValueId state(std::string name, std::string kind) {
        return bound(build.state(std::move(name), DType::f32, {4, 1, 2}), std::move(kind));
    }
    ValueId neg(std::string name, ValueId x) { return build.node(TN_OP_NEG, {x}, {}, std::move(name)); }
    ValueId add(std::string name, ValueId a, ValueId b) { return build.add(a, b, std::move(name)); }
    ValueId mul(std::string name, ValueId a, ValueId b) { return build.mul(a, b, std::move(name)); }

    /// A kind of memory that no device computes in, and the devices that can use it where it is.
    void memory(const std::string &kind, std::string_view users) {
        kinds_.push_back(kind);
        users_[kind] = users;
    }
    /// Devices that can also use the memory that `owner` computes in.
    void shares(char owner, std::string_view users) { users_[std::string(1, owner)] += users; }
    /// Both compute in one type of memory, the first's.
    void same_memory(char first, char second) {
        same_[second] = first;
        users_[std::string(1, first)] += second;
        users_[std::string(1, second)] += first;
    }
    void refuses(std::string_view devices, const std::string &node) { answers_[node].refused += devices; }
    void offloads(std::string_view devices, const std::string &node) { answers_[node].offloaded += devices; }
    void pin(const std::string &node, char device) { pins_[node] = device; }

    /// Ends the drawing; once.
    const Graph &finish() {
        auto made = std::move(build).finish();
        REQUIRE_MESSAGE(made.ok(), made.status().message());
        graph_.push_back(*std::move(made));
        make_reach();
        make_support();
        return graph_[0];
    }

    PlaceInput problem() const {
        return {graph_[0],
                values_[0],
                support_,
                reach_,
                pinned_,
                [this](uint32_t device) { return std::string(1, devices_[device]); },
                [](uint32_t, NodeId) { return std::string("it said no"); }};
    }
    char letter(uint32_t device) const { return device == k_no_value ? '-' : devices_[device]; }

    /// "n:a=1.wgt m:b=2.sup": nodes in order. The message where there is no placement.
    std::string nodes() {
        const auto placed = placement();
        if (!placed.ok()) return placed.status().message();
        std::string text;
        for (NodeId id = 0; id < placed->nodes.size(); ++id)
            text += entry(graph_[0].nodes()[id].name, placed->nodes[id], text.empty());
        return text;
    }
    /// The same for values that no node makes, views among them, which are named by `views`.
    std::string values(const std::map<ValueId, std::string> &views = {}) {
        const auto placed = placement();
        if (!placed.ok()) return placed.status().message();
        std::string text;
        for (ValueId id = 0; id < placed->values.size(); ++id) {
            const auto view = views.find(id);
            if (graph_[0].values()[id].producer != k_no_value) continue;
            text += entry(view == views.end() ? std::string(graph_[0].values()[id].name) : view->second,
                          placed->values[id], text.empty());
        }
        return text;
    }
    /// "a: x<b w<c | n m ; b: | o": segments with what is copied in (and from where), and their nodes. With waits behind
    /// a '^': "b^0: ...".
    std::string segments(std::span<const NodeId> observed = {}) {
        const auto placed = placement();
        if (!placed.ok()) return placed.status().message();
        auto cut = split(problem(), *placed, observed);
        if (!cut.ok()) return cut.status().message();
        (void)order_segments(problem(), *placed, *cut);
        std::string text;
        for (const Segment &segment : cut->segments) {
            text += fmt::format("{}{}", text.empty() ? "" : " ; ", letter(segment.device));
            for (uint32_t i = segment.first_wait; i < segment.end_wait; ++i) text += fmt::format("^{}", cut->waits[i]);
            text += ':';
            for (uint32_t copy : segment.copies())
                text += fmt::format(" {}<{}", graph_[0].values()[cut->copies[copy].value].name,
                                    letter(cut->copies[copy].from));
            text += " |";
            for (NodeId id : segment.nodes()) text += fmt::format(" {}", std::string_view(graph_[0].nodes()[id].name));
        }
        return text;
    }

    Result<Placement> placement() {
        if (graph_.empty()) finish();
        return place(problem());
    }

private:
    struct Answers {
        std::string refused, offloaded;
    };

    ValueId bound(ValueId id, std::string kind) {
        kind_of_[id] = std::move(kind);
        return id;
    }
    std::string entry(std::string_view name, const Assignment &at, bool first) const {
        return fmt::format("{}{}:{}={}", first ? "" : " ", name, letter(at.device), reason_code(at.reason));
    }
    uint32_t kind(const std::string &name) const {
        const auto found = std::find(kinds_.begin(), kinds_.end(), name);
        REQUIRE_MESSAGE(found != kinds_.end(), name);
        return uint32_t(found - kinds_.begin());
    }

    void make_reach() {
        reach_.devices = uint32_t(devices_.size());
        reach_.types = uint32_t(kinds_.size());
        reach_.usable.resize(size_t(reach_.devices) * reach_.types);
        reach_.first.assign(reach_.types, k_no_value);
        for (uint32_t device = 0; device < reach_.devices; ++device) {
            const auto same = same_.find(devices_[device]);
            reach_.same.push_back(uint32_t(devices_.find(same == same_.end() ? devices_[device] : same->second)));
            for (uint32_t type = 0; type < reach_.types; ++type) {
                if (users_[kinds_[type]].find(devices_[device]) == std::string::npos) continue;
                reach_.usable[size_t(device) * reach_.types + type] = 1;
                if (reach_.first[type] == k_no_value) reach_.first[type] = device;
            }
        }
        reach_.bound.assign(graph_[0].values().size(), k_no_value);
        for (const auto &[id, name] : kind_of_) reach_.bound[id] = kind(name);
    }

    void make_support() {
        const Graph &graph = graph_[0];
        values_.emplace_back(graph);
        support_ = SupportTable(reach_.devices, graph.nodes().size());
        if (!pins_.empty()) pinned_.assign(graph.nodes().size(), k_no_value);
        for (NodeId id = 0; id < graph.nodes().size(); ++id) {
            const std::string name(graph.nodes()[id].name);
            const Answers &answers = answers_[name];
            for (uint32_t device = 0; device < reach_.devices; ++device) {
                uint8_t &bits = support_.at(device, id).bits;
                if (answers.refused.find(devices_[device]) == std::string::npos) bits |= NodeSupport::k_claimed;
                if (answers.offloaded.find(devices_[device]) != std::string::npos) bits |= NodeSupport::k_offload;
            }
            if (const auto pin = pins_.find(name); pin != pins_.end())
                pinned_[id] = uint32_t(devices_.find(pin->second));
        }
    }

    std::string devices_;
    std::vector<std::string> kinds_;
    std::map<std::string, std::string> users_;
    std::map<char, char> same_;
    std::map<ValueId, std::string> kind_of_;
    std::map<std::string, Answers> answers_;
    std::map<std::string, char> pins_;

    std::vector<Graph> graph_;  // one, once it is finished
    std::vector<ValueTable> values_;
    SupportTable support_;
    MemoryReach reach_;
    std::vector<uint32_t> pinned_;
};

}  // namespace tenon
