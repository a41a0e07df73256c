#include "sched/execute.h"

#include <fmt/format.h>

namespace tenon {
namespace {

/// The buffer that a storage is in, once memory is there.
Buffer *buffer_of(const BoundGraph &executable, const Storage &storage) {
    switch (storage.kind) {
        case Storage::Kind::tensor: return executable.compiled->tensors[storage.index].buffer().get();
        case Storage::Kind::io: return executable.io[storage.device].get();
        case Storage::Kind::arena: return executable.arenas[storage.device].get();
        case Storage::Kind::none: break;
    }
    return nullptr;
}

/// Gives every slot its descriptor and the plugin's cookie for it.
Status bind_slots(BoundGraph &executable) {
    const Compiled &compiled = *executable.compiled;
    executable.slots.resize(compiled.slots.size());
    executable.buffers.resize(compiled.slots.size());
    for (size_t i = 0; i < compiled.slots.size(); ++i) {
        const Slot &slot = compiled.slots[i];
        tn_value &value = executable.slots[i];
        executable.buffers[i] = buffer_of(executable, slot.storage);
        if (slot.storage.kind == Storage::Kind::tensor) {
            value = compiled.tensors[slot.storage.index].descriptor();
            continue;
        }
        value = describe(slot.type, slot.shape, slot.name);
        value.offset = slot.storage.offset;
        TENON_ASSIGN(value.cookie, executable.buffers[i]->init_tensor(value));
    }
    return {};
}

Status bind_segment(BoundGraph &executable, const CompiledSegment &segment, const Device &device) {
    std::vector<tn_binding> bindings;
    for (const BindingSource &source : segment.bindings) {
        const Buffer *buffer = source.buffer;
        if (source.kind == Storage::Kind::io) buffer = executable.io[source.device].get();
        if (source.kind == Storage::Kind::arena) buffer = executable.arenas[source.device].get();
        tn_binding binding{};
        binding.struct_size = TN_SIZE_BINDING;
        // H02: another plugin's memory arrives as an address.
        binding.buffer = buffer->type().plugin() == device.plugin() ? buffer->handle() : nullptr;
        binding.base = buffer->base();
        binding.bytes = buffer->bytes();
        bindings.push_back(binding);
    }
    std::vector<uint64_t> cookies(segment.slot_of.size());
    for (size_t i = 0; i < cookies.size(); ++i)
        if (segment.slot_of[i] != k_no_value) cookies[i] = executable.slots[segment.slot_of[i]].cookie;
    tn_bind bind{};
    bind.struct_size = TN_SIZE_BIND;
    bind.bindings = bindings.data();
    bind.binding_count = bindings.size();
    bind.binding_stride = sizeof(tn_binding);
    bind.cookies = cookies.data();
    return segment.plan->bind(bind).in(fmt::format("segment ({}) on {}", segment.label, device.name()));
}

Status synchronize(Lane &lane) {
    if (!lane.busy) return {};
    lane.busy = false;
    Status status = lane.stream->synchronize();
    if (status.ok() || !lane.last) return status;
    return std::move(status).in(fmt::format("segment ({}) on {}", lane.last->label, lane.device->name()));
}

/// Carries one value over: straight where the CPU reaches one side, else by way of staging memory.
Status carry(const BoundGraph &executable, std::vector<Lane> &lanes, uint32_t index) {
    const Compiled &compiled = *executable.compiled;
    const Copy &copy = compiled.schedule.copies()[index];
    const uint32_t from = compiled.slot_of_value[copy.value], to = compiled.slot_of_copy[index];
    const tn_value &source = executable.slots[from], &target = executable.slots[to];
    Buffer &source_buffer = *executable.buffers[from], &target_buffer = *executable.buffers[to];
    const bool plain_target = is_plain_host(target_buffer.type()), plain_source = is_plain_host(source_buffer.type());
    std::byte *staged = plain_target ? static_cast<std::byte *>(target_buffer.base()) + target.offset
                                     : const_cast<std::byte *>(executable.staging[index].data());
    if (plain_target) TENON_TRY(synchronize(lanes[copy.to]));  // the target's place may still be in use
    const void *bytes = staged;
    if (plain_source && !plain_target)
        bytes = static_cast<std::byte *>(source_buffer.base()) + source.offset;
    else
        TENON_TRY(source_buffer.get(source, 0, staged, copy.bytes));
    if (plain_target) return {};
    Lane &lane = lanes[copy.to];
    lane.busy = true;
    return lane.stream->set(target_buffer, target, 0, bytes, copy.bytes);
}

Status queue_segment(const BoundGraph &executable, std::vector<Lane> &lanes, uint32_t s, uint64_t cancel_token,
                     SessionCounters &counters) {
    const Schedule &schedule = executable.compiled->schedule;
    const CompiledSegment &segment = executable.compiled->segments[s];
    // One device at a time: what others have written is there to be read and carried over, and memory that one reads in
    // another's arena can't be overwritten under it.
    for (Lane &lane : lanes)
        if (&lane != &lanes[segment.device]) TENON_TRY(synchronize(lane));
    for (uint32_t copy : schedule.segments()[s].copies) {
        TENON_TRY(carry(executable, lanes, copy));
        ++counters.copies;
        counters.copied_bytes += schedule.copies()[copy].bytes;
    }
    Lane &lane = lanes[segment.device];
    lane.busy = true;
    lane.last = &segment;
    return segment.plan->run(*lane.stream, 0, cancel_token);
}

}  // namespace

Status bind(BoundGraph &executable, std::vector<Lane> &lanes) {
    // The old arenas go only when every plan has left them.
    executable.bound = false;
    executable.arenas.resize(lanes.size());
    for (size_t d = 0; d < lanes.size(); ++d) {
        executable.retired.push_back(std::move(executable.arenas[d]));
        executable.arenas[d] = lanes[d].arena;
    }
    TENON_TRY(bind_slots(executable));
    for (const CompiledSegment &segment : executable.compiled->segments)
        TENON_TRY(bind_segment(executable, segment, *lanes[segment.device].device));
    executable.bound = true;
    executable.retired.clear();
    return {};
}

Status write_constants(BoundGraph &executable) {
    for (const Compiled::Constant &constant : executable.compiled->constants)
        TENON_TRY(executable.buffers[constant.slot]->set(executable.slots[constant.slot], 0, constant.bytes->data(),
                                                         constant.bytes->size()));
    return {};
}

Status execute(const BoundGraph &executable, std::vector<Lane> &lanes, uint64_t cancel_token,
               SessionCounters &counters) {
    Status status;
    for (uint32_t s = 0; status.ok() && s < executable.compiled->segments.size(); ++s)
        status = queue_segment(executable, lanes, s, cancel_token, counters);
    for (Lane &lane : lanes) {
        Status end = synchronize(lane);
        lane.last = nullptr;
        if (status.ok()) status = std::move(end);
    }
    ++counters.runs;
    return status;
}

}  // namespace tenon
