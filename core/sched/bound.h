// A compiled graph in memory: its buffers, one set for each slot, and the plans bound to them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sched/compile.h"
#include "tenon/session.h"

namespace tenon {

/// The buffers of one area of a device.
using Chunks = std::vector<std::shared_ptr<Buffer>>;

/// One of the graph's inputs, in each slot.
struct BoundInput {
    ValueId value = k_no_value;
    bool is_read = false;      // some node reads it
    uint64_t latest = 0;       // counts its writes; 0: never written
    uint32_t latest_slot = 0;  // where that one is
    struct InSlot {
        uint64_t written = 0;            // the write that this slot has
        const void *borrowed = nullptr;  // the caller's bytes for this slot's run
    };
    std::vector<InSlot> slots;
};

/// A value where it lies: what buffer and stream calls want.
struct Located {
    Buffer *buffer = nullptr;
    tn_value value{};
};

struct BoundGraph {
    // The buffers stand before the plans in `compiled`, so that they are freed after them: a plan's buffers live as long as
    // it is bound to them.
    std::vector<Chunks> constants;           // per device
    std::vector<std::vector<Chunks>> slots;  // [slot][device]
    std::vector<Chunks> arenas;              // per device: those that the plans are bound to
    std::vector<Chunks> retired;             // to which some plan may still be bound, since a bind failed
    std::unique_ptr<Compiled> compiled;
    bool bound = false;                          // all plans are bound to `arenas`
    std::vector<uint64_t> generations;           // of the devices, when this was compiled
    std::vector<std::vector<uint64_t>> cookies;  // [slot][stored]
    std::vector<uint32_t> lanes;                 // devices that have segments
    std::vector<std::vector<std::unique_ptr<Event>>>
        events;  // [slot][segment]: its end, where another device waits for it
    std::vector<std::vector<std::unique_ptr<Event>>> ends;  // [slot][device]: the end of a run
    std::vector<BoundInput> inputs;
    std::vector<uint32_t> input_of;  // per value: index into inputs, or k_no_value
    std::vector<std::byte> staging;  // for inputs that keep their value from slot to slot
    uint64_t runs = 0;               // submitted so far
    std::vector<uint64_t> run_in;    // per slot: the session's number of the last run there; 0: none

    uint32_t slot_count() const { return uint32_t(slots.size()); }
    uint32_t next_slot() const { return uint32_t(runs % slots.size()); }
    uint32_t last_slot() const { return uint32_t((runs + slots.size() - 1) % slots.size()); }
    /// The slot of one of the last runs; none for a run that isn't among them.
    std::optional<uint32_t> slot_of(uint64_t run) const;
    /// A run takes the next slot, which it answers.
    uint32_t take_slot(uint64_t run);
    Located locate(uint32_t stored, uint32_t slot) const;
    Buffer *buffer_of(const Storage &storage, const MemoryPlace &place, uint32_t slot) const;
};

struct Executable::Impl : BoundGraph {};

/// Binds the plans of all slots to the graph's own memory and to these arenas. The old ones go when every plan has left
/// them. Nothing is in flight.
Status bind_plans(BoundGraph &graph, const std::vector<Chunks> &arenas);

/// Writes the constants of the graph and its decompositions: once, after the first bind.
Status write_constants(BoundGraph &graph);

/// The graph's inputs, and the events that its runs record.
Status add_inputs_and_events(BoundGraph &graph);

/// Whether the CPU reads and writes buffers of this type in canonical layout.
inline bool is_plain_host(const BufferType &type) {
    return type.is_host() && !type.is_packed();
}

}  // namespace tenon
