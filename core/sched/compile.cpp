#include "sched/compile.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "graph/op_contract.h"

namespace tenon {

Result<PlacedGraph> place_graph(const Graph &graph, const BoundTypes &bound, Decompositions &formulas,
                                CompileContext &context) {
    PlacedGraph placed;
    TENON_ASSIGN(placed.support, SupportTable::ask(graph, context.devices, bound, context.types, formulas));
    TENON_ASSIGN(placed.reach, MemoryReach::ask(context.devices, bound, context.types));
    TENON_ASSIGN(placed.pinned, resolve_pins(graph, context.devices, context.pins));
    TENON_ASSIGN(placed.placement, place(PlaceInput{graph, context.devices, bound, placed.support, placed.reach,
                                                    placed.pinned, formulas}));
    return placed;
}

class Compiler {
public:
    Compiler(const Graph &graph, const TensorMap &tensors, CompileContext &context)
        : graph_(graph), given_(tensors), context_(context), out_(std::make_unique<Compiled>()) {
        out_->formulas = std::make_unique<Decompositions>(graph);
        arenas_.resize(context.devices.size());
        io_bytes_.resize(context.devices.size());
    }

    Result<std::unique_ptr<Compiled>> run() {
        TENON_TRY(check_outputs());
        TENON_TRY(bind_tensors());
        TENON_ASSIGN(placed_, place_graph(graph_, bound_, *out_->formulas, context_));
        const PlaceInput input{graph_,        context_.devices, bound_,         placed_.support,
                               placed_.reach, placed_.pinned,   *out_->formulas};
        TENON_ASSIGN(split_, split(input, placed_.placement));
        find_readers();
        TENON_TRY(make_slots());
        for (uint32_t i = 0; i < split_.segments.size(); ++i) TENON_TRY(prepare_segment(i));
        TENON_TRY(plan_arenas());
        for (CompiledSegment &segment : out_->segments) {
            TENON_TRY(place_segment(segment));
            segment.lowering.reset();
        }
        fill_schedule();
        return std::move(out_);
    }

private:
    struct Arena {
        std::vector<Interval> intervals;
        MemoryPlan plan;
    };

    const Value &value(ValueId id) const { return graph_.values()[id]; }

    Status bind_tensors() {
        bound_.resize(graph_.values().size());
        infos_.resize(graph_.values().size());
        tensor_of_.resize(graph_.values().size(), k_no_value);
        for (ValueId id = 0; id < bound_.size(); ++id) {
            const Value &v = value(id);
            if (v.view_of != k_no_value || !(v.flags & (TN_VALUE_WEIGHT | TN_VALUE_STATE)) || v.constant) continue;
            const auto found = given_.find(v.name);
            if (found == given_.end() || found->second.empty())
                return Status::invalid_argument(fmt::format("no tensor was given for '{}'", v.name));
            const Tensor &tensor = found->second;
            if (tensor.type() != v.type || !(tensor.shape() == v.shape))
                return Status::invalid_argument(fmt::format("'{}' is {} {}, but its tensor is {} {}", v.name,
                                                            dtype_info(v.type).name, to_string(v.shape),
                                                            dtype_info(tensor.type()).name, to_string(tensor.shape())));
            bound_[id] = std::make_shared<const BufferType>(tensor.buffer()->type());
            infos_[id] = bound_[id]->info();
            tensor_of_[id] = uint32_t(out_->tensors.size());
            out_->tensors.push_back(tensor);
        }
        return {};
    }

    /// Which base values are read outside of the segment that writes them: those must be written, and live on.
    void find_readers() {
        writer_.assign(graph_.values().size(), k_no_value);
        observed_.assign(graph_.values().size(), false);
        for (uint32_t s = 0; s < split_.segments.size(); ++s)
            for (NodeId id : split_.segments[s].nodes)
                for (ValueId output : graph_.nodes()[id].outputs)
                    if (graph_.base(output) == output) writer_[output] = s;
        for (ValueId output : graph_.outputs()) observed_[graph_.base(output)] = true;
        for (const Copy &copy : split_.copies) observed_[copy.value] = true;
        for (uint32_t s = 0; s < split_.segments.size(); ++s)
            for (NodeId id : split_.segments[s].nodes)
                for (ValueId input : graph_.nodes()[id].inputs)
                    if (input != k_no_value && writer_[graph_.base(input)] != s) observed_[graph_.base(input)] = true;
    }

    uint32_t add_slot(const Value &v, Storage storage) {
        out_->slots.push_back({v.type, v.shape, v.name.c_str(), storage});
        if (v.constant) out_->constants.push_back({uint32_t(out_->slots.size() - 1), v.constant});
        return uint32_t(out_->slots.size() - 1);
    }

    Result<uint64_t> stored_bytes(uint32_t device, DType type, const Shape &shape, const char *name) const {
        return context_.devices[device]->default_buffer_type().tensor_bytes(describe(type, shape, name));
    }

    Status too_large(uint32_t device) const {
        return Status::out_of_memory(
            fmt::format("the graph's values on {} are larger than any address", context_.devices[device]->name()));
    }

    Result<Storage> in_io(uint32_t device, const Value &v) {
        TENON_ASSIGN(const uint64_t bytes, stored_bytes(device, v.type, v.shape, v.name.c_str()));
        const uint64_t alignment = context_.devices[device]->default_buffer_type().alignment();
        const auto at = align_up(io_bytes_[device], alignment);
        const auto end = at ? tenon::add(*at, bytes) : std::nullopt;
        if (!end) return too_large(device);
        io_bytes_[device] = *end;
        return Storage{Storage::Kind::io, device, 0, *at};
    }

    Result<Storage> in_arena(uint32_t device, DType type, const Shape &shape, const char *name) {
        TENON_ASSIGN(const uint64_t bytes, stored_bytes(device, type, shape, name));
        Arena &arena = arenas_[device];
        const uint64_t alignment = context_.devices[device]->default_buffer_type().alignment();
        arena.intervals.push_back({bytes, alignment, UINT32_MAX, 0});  // no life yet
        return Storage{Storage::Kind::arena, device, uint32_t(arena.intervals.size() - 1), 0};
    }

    void touch(const Storage &storage, uint32_t time) {
        if (storage.kind != Storage::Kind::arena) return;
        Interval &interval = arenas_[storage.device].intervals[storage.index];
        interval.first = std::min(interval.first, time);
        interval.last = std::max(interval.last, time);
    }

    /// One slot for each base value of the graph and each copy. Inputs, outputs and constants lie apart from the arena.
    Status make_slots() {
        std::vector<bool> is_output(graph_.values().size());
        for (ValueId output : graph_.outputs()) is_output[graph_.base(output)] = true;
        out_->slot_of_value.assign(graph_.values().size(), k_no_value);
        for (ValueId id = 0; id < graph_.values().size(); ++id) {
            const Value &v = value(id);
            if (v.view_of != k_no_value) continue;
            Storage storage;
            const uint32_t home = placed_.placement.values[id].device;
            if (tensor_of_[id] != k_no_value) {
                storage = {Storage::Kind::tensor, home, tensor_of_[id], 0};
            } else if (v.constant || v.flags & TN_VALUE_INPUT || is_output[id]) {
                TENON_ASSIGN(storage, in_io(home == k_no_value ? 0 : home, v));
            } else {
                TENON_ASSIGN(storage, in_arena(home, v.type, v.shape, v.name.c_str()));
            }
            out_->slot_of_value[id] = add_slot(v, storage);
        }
        for (ValueId id = 0; id < graph_.values().size(); ++id)
            if (value(id).view_of != k_no_value) out_->slot_of_value[id] = out_->slot_of_value[value(id).view_of];
        for (const Copy &copy : split_.copies) {
            const Value &v = value(copy.value);
            TENON_ASSIGN(const Storage storage, in_arena(copy.to, v.type, v.shape, v.name.c_str()));
            out_->slot_of_copy.push_back(add_slot(v, storage));
        }
        return {};
    }

    Lowering::Base describe_base(uint32_t s, ValueId base, const tn_buffer_type_info *info) const {
        const Value &v = value(base);
        if (split_.stand_ins[s].contains(base)) return {TN_VALUE_INPUT, nullptr};
        uint32_t flags = v.flags & (TN_VALUE_WEIGHT | TN_VALUE_STATE | TN_VALUE_INPUT);
        if (!flags && writer_[base] != s) flags = TN_VALUE_INPUT;
        if (writer_[base] == s && observed_[base]) flags |= TN_VALUE_OBSERVED;
        return {flags, info};
    }

    Status prepare_segment(uint32_t s) {
        CompiledSegment segment;
        segment.device = split_.segments[s].device;
        const auto &device = context_.devices[segment.device];
        segment.lowering = std::make_unique<Lowering>(graph_, [&](ValueId base) {
            const bool in_place = bound_[base] && placed_.reach.of_bound[segment.device][base];
            return describe_base(s, base, in_place ? &infos_[base] : nullptr);
        });
        for (NodeId node : split_.segments[s].nodes) {
            if (placed_.support.at(segment.device, node).claimed) {
                segment.lowering->add(node);
                continue;
            }
            TENON_ASSIGN(const Decomposition *formula, out_->formulas->get(node));
            segment.lowering->add(node, *formula);
        }
        const auto &nodes = split_.segments[s].nodes;
        segment.label = graph_.nodes()[nodes.front()].name;
        if (nodes.size() > 1) segment.label += fmt::format(" ... {}", graph_.nodes()[nodes.back()].name);
        auto plan = Plan::prepare(device, segment.lowering->graph().view());
        if (!plan.ok())
            return Status(plan.status()).in(fmt::format("segment {} ({}) on {}", s, segment.label, device->name()));
        segment.plan = *std::move(plan);
        ++out_->plans;
        TENON_TRY(slot_values(s, segment));
        TENON_TRY(live(s, segment));
        out_->segments.push_back(std::move(segment));
        return {};
    }

    /// Finds the slot of each value of the segment, and makes those of values that only a decomposition knows.
    Status slot_values(uint32_t s, CompiledSegment &segment) {
        const tn_graph &abi = segment.lowering->graph().view();
        segment.slot_of.assign(abi.value_count, k_no_value);
        std::vector<bool> unstored(abi.value_count);
        for (uint32_t id : segment.plan->unstored()) unstored[id] = true;
        for (uint32_t local = 0; local < abi.value_count; ++local) {
            const tn_value &v = abi.values[local];
            const Lowering::Origin &origin = segment.lowering->values()[local];
            if (v.view_of != TN_NONE) {
                segment.slot_of[local] = segment.slot_of[v.view_of];
            } else if (unstored[local]) {
                continue;
            } else if (origin.value != k_no_value) {
                const auto stand_in = split_.stand_ins[s].find(origin.value);
                segment.slot_of[local] = stand_in == split_.stand_ins[s].end() ? out_->slot_of_value[origin.value]
                                                                               : out_->slot_of_copy[stand_in->second];
            } else {
                const Value &made = *origin.made;
                Storage storage;
                if (made.constant) {
                    TENON_ASSIGN(storage, in_io(segment.device, made));
                } else {
                    TENON_ASSIGN(storage, in_arena(segment.device, made.type, made.shape, made.name.c_str()));
                }
                segment.slot_of[local] = add_slot(made, storage);
            }
        }
        return {};
    }

    /// Lifetimes: the copies into a segment at one moment, then its groups one after the other.
    Status live(uint32_t s, CompiledSegment &segment) {
        for (uint32_t copy : split_.segments[s].copies) {
            touch(out_->slots[out_->slot_of_copy[copy]].storage, now_);
            touch(out_->slots[out_->slot_of_value[split_.copies[copy].value]].storage, now_);
        }
        ++now_;
        const tn_graph &abi = segment.lowering->graph().view();
        const auto &groups = segment.plan->node_groups();
        auto touch_value = [&](uint32_t local, uint32_t group) {
            if (local != TN_NONE && segment.slot_of[local] != k_no_value)
                touch(out_->slots[segment.slot_of[local]].storage, now_ + group);
        };
        for (uint32_t i = 0; i < abi.node_count; ++i) {
            const tn_node &node = abi.nodes[i];
            for (uint32_t k = 0; k < node.input_count; ++k) touch_value(node.inputs[k], groups[i]);
            for (uint32_t k = 0; k < node.output_count; ++k) touch_value(node.outputs[k], groups[i]);
        }
        const auto &scratch = segment.plan->group_scratch();
        for (uint32_t g = 0; g < scratch.size(); ++g) {
            Arena &arena = arenas_[segment.device];
            const uint64_t alignment = context_.devices[segment.device]->default_buffer_type().alignment();
            arena.intervals.push_back({scratch[g], alignment, now_ + g, now_ + g});
            segment.scratch.push_back({Storage::Kind::arena, segment.device, uint32_t(arena.intervals.size() - 1), 0});
        }
        std::vector<uint32_t> writer(abi.value_count);  // the group that writes each value
        for (uint32_t i = 0; i < abi.node_count; ++i)
            for (uint32_t k = 0; k < abi.nodes[i].output_count; ++k) writer[abi.nodes[i].outputs[k]] = groups[i];
        for (auto [output, input] : segment.plan->in_place())
            if (segment.slot_of[output] != k_no_value && segment.slot_of[input] != k_no_value)
                offers_.push_back({segment.slot_of[output], segment.slot_of[input], now_ + writer[output]});
        now_ += uint32_t(scratch.size());
        return {};
    }

    Status check_outputs() const {
        for (ValueId output : graph_.outputs()) {
            const Value &v = value(output);
            if (v.view_of == k_no_value) continue;
            // A view is read as a range of its base's bytes.
            if (!is_contiguous(v))
                return Status::invalid_argument(
                    fmt::format("the output '{}' is a view whose elements don't lie in order; "
                                "copy it first",
                                v.name));
        }
        return {};
    }

    /// Accepts the in-place offers whose input really ends there, then asks the planner.
    Status plan_arenas() {
        // Per interval: the one in whose place it lies; and whether its own place was given away, which happens once.
        std::vector<std::vector<uint32_t>> merged(arenas_.size());
        std::vector<std::vector<bool>> given(arenas_.size());
        for (size_t d = 0; d < arenas_.size(); ++d) {
            merged[d].resize(arenas_[d].intervals.size());
            given[d].resize(arenas_[d].intervals.size());
            for (uint32_t i = 0; i < merged[d].size(); ++i) merged[d][i] = i;
        }
        std::ranges::sort(offers_, {}, &InPlaceOffer::time);
        for (const InPlaceOffer &offer : offers_) {
            const Storage &out = out_->slots[offer.output].storage, &in = out_->slots[offer.input].storage;
            if (out.kind != Storage::Kind::arena || in.kind != Storage::Kind::arena || out.device != in.device)
                continue;
            auto &intervals = arenas_[out.device].intervals;
            const uint32_t to = merged[in.device][in.index];
            Interval &input = intervals[to], &output = intervals[out.index];
            if (intervals[in.index].last != offer.time || input.last != offer.time || output.first != offer.time ||
                output.bytes > input.bytes || to == out.index || given[in.device][in.index])
                continue;
            given[in.device][in.index] = true;
            input.last = output.last;
            merged[out.device][out.index] = to;
            output.bytes = 0;
        }
        for (size_t d = 0; d < arenas_.size(); ++d) {
            for (Interval &interval : arenas_[d].intervals)
                if (interval.first > interval.last)
                    interval.first = interval.last = 0, interval.bytes = 0;  // never used
            // No offset can lie behind the sum of all, so that the planner needs no checks of its own.
            std::optional<uint64_t> sum = 0;
            for (const Interval &interval : arenas_[d].intervals)
                if (sum && (sum = align_up(*sum, interval.alignment))) sum = tenon::add(*sum, interval.bytes);
            if (!sum || *sum > uint64_t(INT64_MAX)) return too_large(uint32_t(d));
            arenas_[d].plan = plan_memory(arenas_[d].intervals);
            for (uint32_t i = 0; i < merged[d].size(); ++i)
                arenas_[d].plan.offsets[i] = arenas_[d].plan.offsets[merged[d][i]];
            const BufferType type = context_.devices[d]->default_buffer_type();
            const uint64_t most = std::max(arenas_[d].plan.bytes, io_bytes_[d]);
            if (type.max_bytes() && most > type.max_bytes())
                return Status::out_of_memory(
                    fmt::format("the graph needs {} bytes in one buffer of {}, which holds at most {}", most,
                                type.name(), type.max_bytes()));
        }
        auto settle = [&](Storage &storage) {
            if (storage.kind == Storage::Kind::arena)
                storage.offset = arenas_[storage.device].plan.offsets[storage.index];
        };
        for (Slot &slot : out_->slots) settle(slot.storage);
        for (CompiledSegment &segment : out_->segments)
            for (Storage &scratch : segment.scratch) settle(scratch);
        return {};
    }

    /// Tells the plan where everything lies, relative to the buffers that it will be bound to.
    Status place_segment(CompiledSegment &segment) {
        const tn_graph &abi = segment.lowering->graph().view();
        auto place_of = [&](const Storage &storage) {
            BindingSource source{storage.kind, storage.device, nullptr};
            uint64_t offset = storage.offset;
            if (storage.kind == Storage::Kind::tensor) {
                source = {storage.kind, 0, out_->tensors[storage.index].buffer().get()};
                offset = out_->tensors[storage.index].offset();
            }
            const auto found = std::ranges::find(segment.bindings, source);
            const auto number = uint32_t(found - segment.bindings.begin());
            if (found == segment.bindings.end()) segment.bindings.push_back(source);
            return tn_place{TN_SIZE_PLACE, nullptr, offset, number, 0};
        };
        std::vector<tn_place> values, scratch;
        for (uint32_t local = 0; local < abi.value_count; ++local) {
            tn_place place{TN_SIZE_PLACE, nullptr, 0, TN_NONE, 0};
            if (segment.slot_of[local] != k_no_value) {
                place = place_of(out_->slots[segment.slot_of[local]].storage);
                if (abi.values[local].view_of != TN_NONE) place.offset += abi.values[local].offset;
            }
            values.push_back(place);
        }
        for (const Storage &storage : segment.scratch) scratch.push_back(place_of(storage));
        tn_placement placement{};
        placement.struct_size = TN_SIZE_PLACEMENT;
        placement.values = values.data();
        placement.value_count = values.size();
        placement.value_stride = sizeof(tn_place);
        placement.scratch = scratch.data();
        placement.scratch_count = scratch.size();
        placement.scratch_stride = sizeof(tn_place);
        placement.binding_count = segment.bindings.size();
        return segment.plan->place(placement).in(fmt::format("segment ({})", segment.label));
    }

    void fill_schedule() {
        Schedule &schedule = out_->schedule;
        schedule.graph_ = graph_;
        schedule.devices_ = context_.devices;
        schedule.nodes_ = placed_.placement.nodes;
        schedule.values_ = placed_.placement.values;
        schedule.segments_ = split_.segments;
        schedule.copies_ = split_.copies;
        for (size_t d = 0; d < arenas_.size(); ++d)
            schedule.memory_.push_back({arenas_[d].plan.bytes, arenas_[d].plan.lower_bound_bytes, io_bytes_[d]});
    }

    struct InPlaceOffer {
        uint32_t output, input;  // slots
        uint32_t time;
    };

    const Graph &graph_;
    const TensorMap &given_;
    CompileContext &context_;
    std::unique_ptr<Compiled> out_;
    BoundTypes bound_;
    std::vector<tn_buffer_type_info> infos_;  // of bound_: described once, at addresses that stay
    std::vector<uint32_t> tensor_of_;         // per value: index into Compiled::tensors
    PlacedGraph placed_;
    Split split_;
    std::vector<uint32_t> writer_;  // per base value: the segment that makes it
    std::vector<bool> observed_;
    std::vector<Arena> arenas_;       // per device
    std::vector<uint64_t> io_bytes_;  // per device
    std::vector<InPlaceOffer> offers_;
    uint32_t now_ = 0;
};

Result<std::unique_ptr<Compiled>> compile(const Graph &graph, const TensorMap &tensors, CompileContext &context) {
    return Compiler(graph, tensors, context).run();
}

}  // namespace tenon
