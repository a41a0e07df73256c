// A compiled graph bound to a session's memory, and how it runs.
#pragma once

#include <memory>
#include <vector>

#include "sched/compile.h"
#include "tenon/session.h"

namespace tenon {

/// What a device holds for all executables of a session.
struct Lane {
    std::shared_ptr<Device> device;
    std::unique_ptr<Stream> stream;
    std::shared_ptr<Buffer> arena;          // sized for the largest schedule; null until one needs it
    bool busy = false;                      // work is queued since the last synchronize
    const CompiledSegment *last = nullptr;  // queued last, for messages
};

/// A compiled graph in memory.
struct BoundGraph {
    // The buffers stand before the plans in `compiled`, so that they are freed after them: a plan's buffers live as long as
    // it is bound to them.
    std::vector<std::shared_ptr<Buffer>> io;       // per device; null where it needs none
    std::vector<std::shared_ptr<Buffer>> arenas;   // per device: those that the plans are bound to
    std::vector<std::shared_ptr<Buffer>> retired;  // to which some plan may still be bound, since a bind failed
    std::unique_ptr<Compiled> compiled;
    bool bound = false;                           // all plans are bound to `arenas`
    std::vector<uint64_t> generations;            // of the devices, when this was compiled
    std::vector<tn_value> slots;                  // per slot: as buffer calls want it, in the memory it is bound to
    std::vector<Buffer *> buffers;                // per slot
    std::vector<std::vector<std::byte>> staging;  // per copy; empty where one side is within the CPU's reach
};

struct Executable::Impl : BoundGraph {};

/// Writes the constants of the graph and its decompositions into io memory: once, after the first bind.
Status write_constants(BoundGraph &executable);

/// Binds the plans to the arenas that the lanes now hold.
Status bind(BoundGraph &executable, std::vector<Lane> &lanes);

/// Whether the CPU reads and writes buffers of this type in canonical layout.
inline bool is_plain_host(const BufferType &type) {
    return type.is_host() && !type.is_packed();
}

/// Runs all segments and waits for their end; on a failure too, so that nothing is in flight afterwards.
Status execute(const BoundGraph &executable, std::vector<Lane> &lanes, uint64_t cancel_token,
               SessionCounters &counters);

}  // namespace tenon
