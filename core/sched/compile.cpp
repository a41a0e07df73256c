#include "sched/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/op_contract.h"

namespace tenon {

class Compiler {
public:
    Compiler(const Graph &graph, const CompileInput &input)
        : graph_(graph), in_(input), values_(graph), lowering_(graph), out_(std::make_unique<Compiled>()) {
        out_->formulas = std::make_unique<Decompositions>(graph);
        out_->devices = input.devices;
        out_->bound = input.bound;
        out_->areas = std::make_unique<Areas>(out_->devices);
        for (const BufferType &type : input.bound.types) infos_.push_back(type.info());
        now_.resize(input.devices.count());
    }

    Result<std::unique_ptr<Compiled>> run() {
        TENON_TRY(check_outputs());
        TENON_ASSIGN(placed_, place_graph(graph_, values_, in_, *out_->formulas));
        const PlaceInput place_input = this->place_input();
        TENON_ASSIGN(split_, split(place_input, placed_.placement, in_.observed));
        out_->order = order_segments(place_input, placed_.placement, split_);
        find_readers();
        TENON_TRY(store_values());
        out_->segments.reserve(split_.segments.size());
        for (uint32_t s = 0; s < split_.segments.size(); ++s) TENON_TRY(prepare_segment(s));
        keep_for_others();
        TENON_TRY(out_->areas->plan());
        for (Stored &stored : out_->stored)
            if (stored.storage.in_area()) stored.place = out_->areas->place(stored.storage);
        fill_schedule();
        return std::move(out_);
    }

private:
    const Value &value(ValueId id) const { return graph_.values()[id]; }
    ValueId base(ValueId id) const { return values_.base[id]; }

    PlaceInput place_input() const {
        return {graph_,
                values_,
                placed_.support,
                placed_.reach,
                in_.pinned,
                [this](uint32_t device) { return in_.devices.list[device]->name(); },
                {}};
    }

    Status check_outputs() const {
        for (ValueId output : graph_.outputs()) {
            // A view is read as a range of its base's bytes.
            if (values_.is_base(output) || is_contiguous(value(output))) continue;
            return Status::invalid_argument(fmt::format(
                "the output '{}' is a view whose elements don't lie in order; copy it first", value(output).name));
        }
        return {};
    }

    /// Which base values are read outside of the segment that writes them: those must be written.
    void find_readers() {
        writer_.assign(graph_.values().size(), k_no_value);
        traits_.assign(graph_.values().size(), 0);
        out_->awaited.assign(split_.segments.size(), false);
        for (uint32_t s = 0; s < split_.segments.size(); ++s)
            for (NodeId id : split_.segments[s].nodes())
                for (ValueId output : graph_.nodes()[id].outputs) {
                    if (base(output) == output)
                        writer_[output] = s;
                    else
                        traits_[base(output)] |= k_changed;
                }
        for (uint32_t s = 0; s < split_.segments.size(); ++s)
            for (NodeId id : split_.segments[s].nodes())
                for (ValueId input : graph_.nodes()[id].inputs)
                    if (input != k_no_value && writer_[base(input)] != s) traits_[base(input)] |= k_observed;
        for (ValueId output : graph_.outputs()) traits_[base(output)] |= k_observed | k_output;
        for (const Copy &copy : split_.copies) traits_[copy.value] |= k_observed;
        for (NodeId id : in_.observed)
            for (ValueId output : graph_.nodes()[id].outputs) traits_[base(output)] |= k_observed;
        for (const auto &use : out_->order.foreign_uses()) traits_[use.base] |= k_crosses;
        for (uint32_t segment : split_.waits) out_->awaited[segment] = true;
    }

    /// What a value takes in the memory that a device computes in.
    Result<uint64_t> stored_bytes(uint32_t device, DType type, const Shape &shape, const char *name) {
        if (device == sized_.device && type == sized_.type && shape == sized_.shape) return sized_.bytes;
        TENON_ASSIGN(const uint64_t bytes, in_.devices.types[device].tensor_bytes(describe(type, shape, name)));
        sized_ = {device, type, shape, bytes};
        return bytes;
    }

    Result<uint32_t> store(Storage::Kind kind, uint32_t device, const Value &v) {
        TENON_ASSIGN(const uint64_t bytes, stored_bytes(device, v.type, v.shape, v.name.c_str()));
        TENON_ASSIGN(const Storage storage, out_->areas->add(kind, device, bytes, v.name));
        out_->stored.push_back({v.type, v.shape, v.name.c_str(), storage, {}});
        const auto number = uint32_t(out_->stored.size() - 1);
        if (v.constant) out_->constants.push_back({number, v.constant});
        return number;
    }

    /// One for each base value of the graph and each copy.
    Status store_values() {
        const auto count = ValueId(graph_.values().size());
        out_->areas->expect(placed_.placement.values);
        out_->stored_of_value.assign(count, k_no_value);
        for (ValueId id = 0; id < count; ++id) {
            if (!values_.is_base(id)) continue;
            const Value &v = value(id);
            const uint32_t home =
                placed_.placement.values[id].device == k_no_value ? 0 : placed_.placement.values[id].device;
            if (placed_.reach.is_bound(id)) {
                out_->stored_of_value[id] = uint32_t(out_->stored.size());
                const Storage storage{Storage::Kind::tensor, home, uint32_t(out_->leaves.size())};
                out_->stored.push_back({v.type, v.shape, v.name.c_str(), storage, {}});
                out_->leaves.push_back(id);
                continue;
            }
            const bool outside = (values_.flags[id] & TN_VALUE_INPUT) || (traits_[id] & k_output);
            const auto kind = v.constant                             ? Storage::Kind::constant
                              : outside || (traits_[id] & k_crosses) ? Storage::Kind::slot
                                                                     : Storage::Kind::arena;
            TENON_ASSIGN(out_->stored_of_value[id], store(kind, home, v));
            if (!outside) continue;
            const Storage &storage = out_->stored[out_->stored_of_value[id]].storage;
            out_->areas->touch(storage, 0);
            out_->areas->touch(storage, Areas::k_to_the_end);
        }
        for (ValueId id = 0; id < count; ++id)
            if (!values_.is_base(id)) out_->stored_of_value[id] = out_->stored_of_value[base(id)];
        for (const Copy &copy : split_.copies) {
            // Written in the order of the reader's stream: one place is enough for any number of slots.
            Value v = value(copy.value);
            v.constant = nullptr;
            TENON_ASSIGN(const uint32_t stored, store(Storage::Kind::arena, copy.to, v));
            out_->stored[stored].name = value(copy.value).name.c_str();
            out_->stored_of_copy.push_back(stored);
        }
        stand_in_.assign(split_.copies.empty() ? 0 : count, k_no_value);
        return {};
    }

    uint32_t stand_in(ValueId at) const { return stand_in_.empty() ? k_no_value : stand_in_[at]; }

    Lowering::Base describe_base(uint32_t s, ValueId at) const {
        if (stand_in(at) != k_no_value) return {TN_VALUE_INPUT, nullptr};
        uint32_t flags = values_.flags[at] & (TN_VALUE_WEIGHT | TN_VALUE_STATE | TN_VALUE_INPUT);
        if (!flags && writer_[at] != s) flags = TN_VALUE_INPUT;
        const bool written = writer_[at] == s || (traits_[at] & k_changed);
        if (written && (traits_[at] & k_observed) && !(flags & TN_VALUE_STATE)) flags |= TN_VALUE_OBSERVED;
        const uint32_t type = in_.bound.of_value[at];
        return {flags, type == k_no_value ? nullptr : &infos_[type]};
    }

    Status prepare_segment(uint32_t s) {
        const Segment &of = split_.segments[s];
        CompiledSegment segment;
        const auto &device = in_.devices.list[of.device];
        for (uint32_t copy : split_.stand_ins_of(s)) stand_in_[split_.copies[copy].value] = copy;
        lowering_.begin([this, s](ValueId at) { return describe_base(s, at); });
        for (NodeId node : of.nodes()) {
            if (placed_.support.at(of.device, node).claimed()) {
                lowering_.add(node);
                continue;
            }
            TENON_ASSIGN(const Decomposition *formula, out_->formulas->get(node));
            lowering_.add(node, *formula);
        }
        auto plan = Plan::prepare(device, lowering_.graph().view());
        if (!plan.ok())
            return Status(plan.status())
                .in(fmt::format("segment {} ({}) on {}", s, segment_label(graph_, of), device->name()));
        segment.plan = *std::move(plan);
        TENON_TRY(find_stored(of.device, segment));
        TENON_TRY(live(s, segment));
        for (uint32_t copy : split_.stand_ins_of(s)) stand_in_[split_.copies[copy].value] = k_no_value;
        out_->segments.push_back(std::move(segment));
        return {};
    }

    /// Finds where each value of the segment is stored, and makes room for those that only a decomposition knows.
    Status find_stored(uint32_t device, CompiledSegment &segment) {
        const tn_graph &abi = lowering_.graph().view();
        segment.values.resize(abi.value_count);
        unstored_.assign(abi.value_count, false);
        for (uint32_t id : segment.plan->unstored()) unstored_[id] = true;
        for (uint32_t local = 0; local < abi.value_count; ++local) {
            const tn_value &v = abi.values[local];
            const Lowering::Origin &origin = lowering_.values()[local];
            auto &entry = segment.values[local];
            if (v.view_of != TN_NONE) {
                entry = {segment.values[v.view_of].stored, v.offset};
            } else if (unstored_[local]) {
                continue;
            } else if (origin.value != k_no_value) {
                const uint32_t copy = stand_in(origin.value);
                entry.stored = copy == k_no_value ? out_->stored_of_value[origin.value] : out_->stored_of_copy[copy];
            } else {
                const auto kind = origin.made->constant ? Storage::Kind::constant : Storage::Kind::arena;
                TENON_ASSIGN(entry.stored, store(kind, device, *origin.made));
            }
        }
        return {};
    }

    /// It is needed at this moment of a device. What others need of its memory is in Order::foreign_uses.
    void touch(uint32_t device, uint32_t stored, uint32_t time) {
        if (stored == k_no_value) return;
        const Storage &storage = out_->stored[stored].storage;
        if (storage.device == device) out_->areas->touch(storage, time);
    }

    /// Lifetimes: what the segment waits for at one moment, the copies into it at the next, then its groups one after the
    /// other.
    Status live(uint32_t s, CompiledSegment &segment) {
        const Segment &of = split_.segments[s];
        uint32_t &now = now_[of.device];
        segment.begin = now;
        for (uint32_t copy : of.copies()) touch(of.device, out_->stored_of_copy[copy], segment.begin + 1);
        now += 2;
        const tn_graph &abi = lowering_.graph().view();
        const auto &groups = segment.plan->node_groups();
        const auto &scratch = segment.plan->group_scratch();
        writing_group_.assign(abi.value_count, 0);
        auto touch_local = [&](uint32_t local, uint32_t group) {
            if (local != TN_NONE) touch(of.device, segment.values[local].stored, now + group);
        };
        for (uint32_t i = 0; i < abi.node_count; ++i) {
            const tn_node &node = abi.nodes[i];
            for (uint32_t k = 0; k < node.input_count; ++k) touch_local(node.inputs[k], groups[i]);
            for (uint32_t k = 0; k < node.output_count; ++k) {
                touch_local(node.outputs[k], groups[i]);
                writing_group_[node.outputs[k]] = groups[i];
            }
        }
        for (uint32_t g = 0; g < scratch.size(); ++g) {
            TENON_ASSIGN(const Storage storage,
                         out_->areas->add(Storage::Kind::arena, of.device, scratch[g], "scratch"));
            out_->areas->touch(storage, now + g);
            segment.scratch.push_back(storage);
        }
        for (auto [output, input] : segment.plan->in_place()) {
            const uint32_t to = segment.values[output].stored, from = segment.values[input].stored;
            if (to != k_no_value && from != k_no_value)
                out_->areas->offer(
                    {out_->stored[to].storage, out_->stored[from].storage, now + writing_group_[output]});
        }
        now += uint32_t(scratch.size());
        segment.end = now - 1;
        // Shown behind the segment's last node, whatever the order of its groups.
        if (std::ranges::binary_search(in_.observed, of.end_node - 1))
            for (ValueId output : graph_.nodes()[of.end_node - 1].outputs)
                touch(of.device, out_->stored_of_value[output], segment.end);
        if (in_.keep_nodes) keep_nodes(segment);
        return {};
    }

    void keep_nodes(CompiledSegment &segment) {
        const tn_graph &abi = lowering_.graph().view();
        auto &kept = segment.nodes;
        for (uint32_t i = 0; i < abi.node_count; ++i) {
            const tn_node &node = abi.nodes[i];
            kept.first_operand.push_back(uint32_t(kept.operands.size()));
            for (uint32_t k = 0; k < node.input_count; ++k)
                if (node.inputs[k] != TN_NONE) kept.operands.push_back(node.inputs[k]);
            kept.operands.insert(kept.operands.end(), node.outputs, node.outputs + node.output_count);
        }
        kept.first_operand.push_back(uint32_t(kept.operands.size()));
    }

    /// What a segment of another device touches is kept until its own device knows that segment to have ended: through
    /// the moment at which one of its segments waits for that. Not to the one before, where the last group may work in
    /// place.
    void keep_for_others() {
        for (const auto &use : out_->order.foreign_uses()) {
            const Storage &storage = out_->stored[out_->stored_of_value[use.base]].storage;
            if (!storage.in_area()) continue;
            const uint32_t next = out_->order.first_after(storage.device, use.segment, split_);
            out_->areas->touch(storage, next == k_no_value ? Areas::k_to_the_end : out_->segments[next].begin);
        }
    }

    void fill_schedule() {
        Schedule &schedule = out_->schedule;
        schedule.graph_ = graph_;
        schedule.devices_ = in_.devices.list;
        schedule.nodes_ = std::move(placed_.placement.nodes);
        schedule.values_ = std::move(placed_.placement.values);
        schedule.segments_ = std::move(split_.segments);
        schedule.copies_ = std::move(split_.copies);
        schedule.waits_ = std::move(split_.waits);
        schedule.observed_.assign(in_.observed.begin(), in_.observed.end());
        for (uint32_t d = 0; d < in_.devices.count(); ++d)
            schedule.memory_.push_back({out_->areas->summary(Storage::Kind::arena, d),
                                        out_->areas->summary(Storage::Kind::slot, d), in_.slots,
                                        out_->areas->summary(Storage::Kind::constant, d).bytes});
    }

    static constexpr uint8_t k_observed = 1;  // someone else than its segment reads it
    static constexpr uint8_t k_output = 2;    // of the graph
    static constexpr uint8_t k_crosses = 4;   // a segment of another device touches it
    static constexpr uint8_t k_changed = 8;   // some node changes it in place

    const Graph &graph_;
    const CompileInput &in_;
    const ValueTable values_;
    Lowering lowering_;
    std::unique_ptr<Compiled> out_;
    std::vector<tn_buffer_type_info> infos_;  // of in_.bound.types: described once, at addresses that stay
    PlacedGraph placed_;
    Split split_;
    LargeVector<uint32_t> writer_;    // per base value: the segment that makes it
    LargeVector<uint8_t> traits_;     // per base value
    LargeVector<uint32_t> stand_in_;  // per value: the copy that the segment at hand reads; empty without copies
    std::vector<uint32_t> now_;       // per device: its clock
    struct {
        uint32_t device = k_no_value;
        DType type = DType::f32;
        Shape shape;
        uint64_t bytes = 0;
    } sized_;                              // the last answer: neighbours are often alike
    std::vector<bool> unstored_;           // per value of the segment at hand
    std::vector<uint32_t> writing_group_;  // likewise
};

Result<PlacedGraph> place_graph(const Graph &graph, const ValueTable &values, const CompileInput &input,
                                Decompositions &formulas) {
    PlacedGraph placed;
    TENON_ASSIGN(placed.reach, MemoryReach::ask(input.devices, input.bound, input.types));
    TENON_ASSIGN(placed.support, SupportTable::ask(graph, input.devices, input.bound, placed.reach, formulas));
    const PlaceInput place_input{graph,
                                 values,
                                 placed.support,
                                 placed.reach,
                                 input.pinned,
                                 [&](uint32_t device) { return input.devices.list[device]->name(); },
                                 [&](uint32_t device, NodeId node) {
                                     return support_reason(graph, *input.devices.list[device], node, formulas);
                                 }};
    TENON_ASSIGN(placed.placement, place(place_input));
    return placed;
}

Result<std::unique_ptr<Compiled>> compile(const Graph &graph, const CompileInput &input) {
    return Compiler(graph, input).run();
}

std::string segment_label(const Graph &graph, const Segment &segment) {
    std::string label(graph.nodes()[segment.first_node].name);
    if (segment.end_node - segment.first_node > 1)
        fmt::format_to(std::back_inserter(label), " ... {}", graph.nodes()[segment.end_node - 1].name);
    return label;
}

}  // namespace tenon
