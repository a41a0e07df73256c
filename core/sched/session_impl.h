// What a session holds, and how an executable is made from a graph.
#pragma once

#include <unordered_map>

#include "sched/cache.h"
#include "sched/pipeline.h"

namespace tenon {

struct Session::Impl {
    std::shared_ptr<Registry> registry;  // outlives all that its plugins made
    DeviceSet devices;
    std::vector<Pin> pins;
    uint32_t slots = 1;
    SessionCounters counters;
    std::vector<Chunks> arenas;  // per device: sized for the largest schedule
    ExecutableCache cache{0};
    std::unique_ptr<Pipeline> pipeline;  // goes first: its runs use the rest

    /// A plan that was measured and is still to be used.
    struct Measured {
        GraphHash graph, names;
        BoundTypes bound;
        std::vector<uint64_t> generations;
        std::unique_ptr<Compiled> compiled;
    };
    std::vector<Measured> measured;  // the newest last
    /// The device that used a state last, by the place where the state lies.
    std::unordered_map<const void *, uint32_t> state_users;
    BoundGraph *last_submitted = nullptr;

    static Result<std::unique_ptr<Impl>> create(std::shared_ptr<Registry> registry, DeviceList devices,
                                                SessionOptions options);

    std::vector<uint64_t> generations() const;
    bool is_current(const std::vector<uint64_t> &of) const;

    Result<std::unique_ptr<Compiled>> compile_graph(const Graph &graph, const BoundTypes &bound,
                                                    std::span<const NodeId> observed);
    /// The one that was measured, if it is for this; null else.
    std::unique_ptr<Compiled> take_measured(const Graph &graph, const BoundTypes &bound);

    Status prepare(BoundGraph &executable, const Graph &graph, const TensorMap &tensors,
                   std::span<const NodeId> observed);
    Status allocate_for(BoundGraph &executable);
    Result<Chunks> allocate(uint32_t device, std::span<const uint64_t> chunk_bytes, const char *what);
    Result<std::shared_ptr<Buffer>> allocate_chunk(uint32_t device, uint64_t bytes, const char *what);
    Status bind_to_arenas(BoundGraph &executable);
    bool is_bound(const BoundGraph &executable) const;
    /// What was derived from a device before it changed (an option was set) is made anew.
    Status refresh(BoundGraph &executable);

    /// Runs of different graphs may use a state on different devices: then one waits for the other.
    Status order_states(const BoundGraph &executable);
    /// Before a submit: bound, inputs there, room in the pipeline.
    Status make_ready(BoundGraph &executable);
    /// An output, from one slot.
    Status read(const BoundGraph &executable, uint32_t slot, ValueId output, std::span<std::byte> bytes,
                uint64_t offset);
    const std::byte *peek(const BoundGraph &executable, uint32_t slot, ValueId output) const;

    /// Inputs that weren't written for this run get the bytes of the last one.
    Status keep_inputs(BoundGraph &executable);
};

}  // namespace tenon
