#include "sched/bound.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

Buffer *BoundGraph::buffer_of(const Storage &storage, const MemoryPlace &place, uint32_t slot) const {
    switch (storage.kind) {
        case Storage::Kind::tensor: return compiled->tensors[storage.index].buffer().get();
        case Storage::Kind::arena: return arenas[storage.device][place.chunk].get();
        case Storage::Kind::slot: return slots[slot][storage.device][place.chunk].get();
        case Storage::Kind::constant: return constants[storage.device][place.chunk].get();
        case Storage::Kind::none: break;
    }
    return nullptr;
}

Located BoundGraph::locate(uint32_t index, uint32_t slot) const {
    const Stored &stored = compiled->stored[index];
    Located out{buffer_of(stored.storage, stored.place, slot), {}};
    if (stored.storage.kind == Storage::Kind::tensor) {
        out.value = compiled->tensors[stored.storage.index].descriptor();
        return out;
    }
    out.value = describe(stored.type, stored.shape, stored.name);
    out.value.offset = stored.place.offset;
    out.value.cookie = cookies[slot][index];
    return out;
}

namespace {

/// The plugin's word for every value, in the memory of one slot.
Status init_values(BoundGraph &graph, uint32_t slot) {
    const Compiled &compiled = *graph.compiled;
    auto &cookies = graph.cookies[slot];
    cookies.assign(compiled.stored.size(), 0);
    for (uint32_t i = 0; i < compiled.stored.size(); ++i) {
        const Storage &storage = compiled.stored[i].storage;
        if (storage.kind == Storage::Kind::tensor) {
            cookies[i] = compiled.tensors[storage.index].cookie();
        } else if (storage.kind != Storage::Kind::slot && slot > 0) {
            cookies[i] = graph.cookies[0][i];
        } else {
            Located at = graph.locate(i, slot);
            at.value.cookie = 0;
            TENON_ASSIGN(cookies[i], at.buffer->init_tensor(at.value));
        }
    }
    return {};
}

const Buffer *buffer_of(const BoundGraph &graph, const BindingSource &source, uint32_t slot) {
    if (source.kind == Storage::Kind::tensor) return source.buffer;
    return graph.buffer_of({source.kind, source.device, 0}, {source.chunk, 0}, slot);
}

/// Binds one segment in one slot; the vectors are the caller's, to be used again.
struct Binder {
    BoundGraph &graph;
    std::vector<tn_binding> bindings;
    std::vector<uint64_t> cookies;

    Status bind(const CompiledSegment &segment, const Device &device, uint32_t slot) {
        bindings.clear(), cookies.clear();
        for (uint32_t source : segment.bindings) {
            const Buffer *buffer = buffer_of(graph, graph.compiled->sources[source], slot);
            tn_binding binding{};
            binding.struct_size = TN_SIZE_BINDING;
            // H02: another plugin's memory arrives as an address.
            binding.buffer = buffer->type().plugin() == device.plugin() ? buffer->handle() : nullptr;
            binding.base = buffer->base();
            binding.bytes = buffer->bytes();
            bindings.push_back(binding);
        }
        for (const auto &value : segment.values) {
            uint64_t cookie = 0;
            if (value.stored != k_no_value) {
                const Stored &stored = graph.compiled->stored[value.stored];
                const Buffer *buffer = graph.buffer_of(stored.storage, stored.place, slot);
                if (buffer->type().plugin() == device.plugin()) cookie = graph.cookies[slot][value.stored];
            }
            cookies.push_back(cookie);
        }
        tn_bind bind{};
        bind.struct_size = TN_SIZE_BIND;
        bind.bindings = bindings.data();
        bind.binding_count = bindings.size();
        bind.binding_stride = sizeof(tn_binding);
        bind.cookies = cookies.data();
        bind.set = slot;
        return segment.plan->bind(bind);
    }
};

}  // namespace

std::optional<uint32_t> BoundGraph::slot_of(uint64_t run) const {
    const auto found = std::ranges::find(run_in, run);
    if (run == 0 || found == run_in.end()) return {};
    return uint32_t(found - run_in.begin());
}

uint32_t BoundGraph::take_slot(uint64_t run) {
    const uint32_t slot = next_slot();
    run_in[slot] = run;
    ++runs;
    return slot;
}

Status bind_plans(BoundGraph &graph, const std::vector<Chunks> &arenas) {
    const Compiled &compiled = *graph.compiled;
    graph.bound = false;
    graph.retired.insert(graph.retired.end(), graph.arenas.begin(), graph.arenas.end());
    graph.arenas = arenas;
    graph.cookies.resize(graph.slots.size());
    Binder binder{graph, {}, {}};
    for (uint32_t slot = 0; slot < graph.slot_count(); ++slot) {
        TENON_TRY(init_values(graph, slot));
        for (uint32_t s = 0; s < compiled.segments.size(); ++s) {
            const Segment &segment = compiled.schedule.segments()[s];
            const Device &device = *compiled.devices.list[segment.device];
            if (Status status = binder.bind(compiled.segments[s], device, slot); !status.ok())
                return std::move(status).in(
                    fmt::format("segment ({}) on {}", segment_label(compiled.graph(), segment), device.name()));
        }
    }
    graph.bound = true;
    graph.retired.clear();
    return {};
}

Status write_constants(BoundGraph &graph) {
    for (const Compiled::Constant &constant : graph.compiled->constants) {
        const Located at = graph.locate(constant.stored, 0);
        TENON_TRY(at.buffer->set(at.value, 0, constant.bytes->data(), constant.bytes->size()));
    }
    return {};
}

Status add_inputs_and_events(BoundGraph &graph) {
    const Compiled &compiled = *graph.compiled;
    const Graph &of = compiled.graph();
    graph.input_of.assign(of.values().size(), k_no_value);
    for (ValueId id : of.inputs()) {
        graph.input_of[id] = uint32_t(graph.inputs.size());
        graph.inputs.push_back({.value = id, .slots = std::vector<BoundInput::InSlot>(graph.slot_count())});
    }
    for (const Node &node : of.nodes())
        for (ValueId id : node.inputs)
            if (id != k_no_value && graph.input_of[of.base(id)] != k_no_value)
                graph.inputs[graph.input_of[of.base(id)]].is_read = true;
    const uint32_t devices = compiled.devices.count();
    for (uint32_t device = 0; device < devices; ++device)
        if (!compiled.order.lane(device).empty()) graph.lanes.push_back(device);
    graph.run_in.resize(graph.slot_count());
    graph.events.resize(graph.slot_count());
    graph.ends.resize(graph.slot_count());
    for (uint32_t slot = 0; slot < graph.slot_count(); ++slot) {
        graph.events[slot].resize(compiled.segments.size());
        for (uint32_t s = 0; s < compiled.segments.size(); ++s)
            if (compiled.awaited[s]) {
                const auto &device = compiled.devices.list[compiled.schedule.segments()[s].device];
                TENON_ASSIGN(graph.events[slot][s], Event::create(device));
            }
        graph.ends[slot].resize(devices);
        for (uint32_t device : graph.lanes) {
            TENON_ASSIGN(graph.ends[slot][device], Event::create(compiled.devices.list[device]));
        }
    }
    return {};
}

}  // namespace tenon
