// Tensors join a compiled graph: their buffers become bindings, and the plans learn where everything lies.
#include <fmt/format.h>

#include <unordered_map>

#include "sched/compile.h"
#include "sched/homes.h"

namespace tenon {
namespace {

/// Numbers the buffers that plans are bound to, and places one segment after the other.
class Attacher {
public:
    explicit Attacher(Compiled &compiled) : out_(compiled) {}

    Status run(const TensorMap &tensors) {
        TENON_TRY(take_tensors(tensors));
        for (uint32_t s = 0; s < out_.segments.size(); ++s)
            TENON_TRY(place_segment(out_.segments[s]).in([&] {
                return fmt::format("segment ({})", segment_label(out_.graph(), out_.schedule.segments()[s]));
            }));
        return {};
    }

private:
    Status take_tensors(const TensorMap &tensors) {
        std::unordered_map<const Buffer *, uint32_t> known;
        for (ValueId id : out_.leaves) {
            const Value &value = out_.graph().values()[id];
            const Tensor *tensor = tensors.find(value.name);
            if (!tensor) return Status::invalid_argument(fmt::format("no tensor was given for '{}'", value.name));
            const auto [found, added] = known.emplace(tensor->buffer().get(), uint32_t(out_.sources.size()));
            if (added) out_.sources.push_back({Storage::Kind::tensor, 0, 0, tensor->buffer().get()});
            source_of_tensor_.push_back(found->second);
            out_.tensors.push_back(*tensor);
        }
        for (uint32_t device = 0; device < out_.devices.count(); ++device)
            for (auto kind : {Storage::Kind::arena, Storage::Kind::slot, Storage::Kind::constant}) {
                source_of_area_.push_back(uint32_t(out_.sources.size()));
                const auto chunks = uint32_t(out_.areas->memory(kind, device).chunk_bytes.size());
                for (uint32_t chunk = 0; chunk < chunks; ++chunk)
                    out_.sources.push_back({kind, device, chunk, nullptr});
            }
        binding_of_.resize(out_.sources.size());
        return {};
    }

    uint32_t source_of(const Storage &storage, const MemoryPlace &place) const {
        if (storage.kind == Storage::Kind::tensor) return source_of_tensor_[storage.index];
        return source_of_area_[storage.device * 3 + size_t(storage.kind) - size_t(Storage::Kind::arena)] + place.chunk;
    }

    tn_place place_at(CompiledSegment &segment, const Storage &storage, const MemoryPlace &place, uint64_t offset) {
        const uint32_t source = source_of(storage, place);
        Binding &binding = binding_of_[source];
        if (binding.round != round_) {
            binding = {round_, uint32_t(segment.bindings.size())};
            segment.bindings.push_back(source);
        }
        const uint64_t base =
            storage.kind == Storage::Kind::tensor ? out_.tensors[storage.index].offset() : place.offset;
        return {TN_SIZE_PLACE, nullptr, base + offset, binding.number, 0};
    }

    Status place_segment(CompiledSegment &segment) {
        ++round_;
        values_.clear(), scratch_.clear();
        for (const auto &value : segment.values) {
            if (value.stored == k_no_value) {
                values_.push_back({TN_SIZE_PLACE, nullptr, 0, TN_NONE, 0});
                continue;
            }
            const Stored &stored = out_.stored[value.stored];
            values_.push_back(place_at(segment, stored.storage, stored.place, value.offset));
        }
        for (const Storage &storage : segment.scratch)
            scratch_.push_back(place_at(segment, storage, out_.areas->place(storage), 0));
        tn_placement placement{};
        placement.struct_size = TN_SIZE_PLACEMENT;
        placement.values = values_.data();
        placement.value_count = values_.size();
        placement.value_stride = sizeof(tn_place);
        placement.scratch = scratch_.data();
        placement.scratch_count = scratch_.size();
        placement.scratch_stride = sizeof(tn_place);
        placement.binding_count = segment.bindings.size();
        return segment.plan->place(placement);
    }

    struct Binding {
        uint32_t round = 0, number = 0;
    };

    Compiled &out_;
    std::vector<uint32_t> source_of_tensor_, source_of_area_;
    std::vector<Binding> binding_of_;  // per source: its number in the segment at hand
    uint32_t round_ = 0;
    std::vector<tn_place> values_, scratch_;
};

}  // namespace

Result<BoundTypes> types_of(const Graph &graph, const TensorMap &tensors) {
    BoundTypes bound(graph.values().size());
    for (ValueId id = 0; id < bound.of_value.size(); ++id) {
        const Value &value = graph.values()[id];
        if (!is_tensor(value)) continue;
        const Tensor *tensor = tensors.find(value.name);
        if (!tensor || tensor->empty())
            return Status::invalid_argument(fmt::format("no tensor was given for '{}'", value.name));
        if (tensor->type() != value.type || !(tensor->shape() == value.shape))
            return Status::invalid_argument(fmt::format("'{}' is {} {}, but its tensor is {} {}", value.name,
                                                        dtype_info(value.type).name, to_string(value.shape),
                                                        dtype_info(tensor->type()).name, to_string(tensor->shape())));
        bound.bind(id, tensor->buffer()->type());
    }
    return bound;
}

Status attach(Compiled &compiled, const TensorMap &tensors) {
    return Attacher(compiled).run(tensors);
}

}  // namespace tenon
