// Runs graphs: devices, streams and memory, and the executables that share them. One thread at a time per session;
// errors leave the session usable.
//
//   auto session = Session::create(registry, devices, {});
//   auto homes   = session->place_tensors(graph);       // where each weight and state should lie
//   ... load weights into tensors there ...
//   auto exe     = session->prepare(graph, tensors);    // placement, plans, memory: once, then found in the cache
//   session->input_write(*exe, graph.find("tokens"), bytes);
//   session->run(*exe);
//   session->read(*exe, graph.find("logits"), out);
//
// Pipelining: `submit` queues a run and returns. With n slots (SessionOptions::slots) n runs may be in flight, each with
// inputs and outputs of its own; what another device reads has a place for each slot too, so that devices work on
// different runs at the same time. Runs of one session take effect as if they ran one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/graph.h"
#include "tenon/log.h"
#include "tenon/registry.h"
#include "tenon/schedule.h"
#include "tenon/status.h"
#include "tenon/tensor.h"

namespace tenon {

/// Weights and states by their names in graphs. A value; equal ids mean equal contents.
class TensorMap {
public:
    void set(std::string name, Tensor tensor);
    void erase(std::string_view name);
    /// Null where there is none; valid until the next change.
    const Tensor *find(std::string_view name) const;
    size_t size() const { return tensors_.size(); }
    auto begin() const { return tensors_.begin(); }
    auto end() const { return tensors_.end(); }
    /// Changes with every change, in this process never to a number that was there before.
    uint64_t id() const { return id_; }

private:
    std::map<std::string, Tensor, std::less<>> tensors_;
    uint64_t id_ = 0;
};

/// Where a weight or state should lie so that all its uses are supported.
struct TensorHome {
    ValueId value = k_no_value;
    uint32_t device = 0;  // index into Session::devices
    BufferType buffer_type;
};

/// How weights and states share devices that can't hold all of them.
struct Offload {
    /// Per value of the graph the group it belongs to, counted from 0 in running order, such as a layer; what is in one
    /// group lies together. Weights and states count, the rest is ignored.
    std::vector<uint32_t> group_of;
    /// This many of the last groups go to the devices before the fallback, and it is an error if they have no room;
    /// none: as many as there is room for.
    std::optional<uint32_t> last_groups;
    /// Graphs that will be run with these tensors, one after the other: what they need beside them is left free.
    std::span<const Graph> graphs;
};

struct SessionOptions {
    std::vector<Pin> pins = {};
    std::vector<BufferType> compute_in = {};  // one for each device, which must support it; empty: devices' defaults
    uint32_t slots = 1;                       // runs that may be in flight at once; at least 1
    uint32_t cached_executables = 64;         // kept for `prepare` to find again, the last used ones
    LogFunction log = {};                     // called from any thread; default: stderr, warnings and errors only
};

/// What has been made so far; all only rise. A steady loop raises none of them but `runs`, `copies` and
/// `copied_bytes`.
struct SessionCounters {
    uint64_t schedules = 0;   // placements made
    uint64_t cache_hits = 0;  // times that `prepare` found what it was asked for
    uint64_t plans = 0;       // segments prepared
    uint64_t buffers = 0;     // device buffers allocated, arenas included
    uint64_t buffer_bytes = 0;
    uint64_t binds = 0;
    uint64_t runs = 0;
    uint64_t copies = 0;  // values carried between devices
    uint64_t copied_bytes = 0;
};

/// A graph made ready: its schedule, and plans bound to the session's memory. Made by Session::prepare, used only with
/// it; may outlive it, but not be used then.
class Executable : public std::enable_shared_from_this<Executable> {
public:
    ~Executable();
    /// Made anew, and the old one gone, when inputs are written after a device has changed.
    const Schedule &schedule() const;

private:
    friend class Session;
    friend class Comparison;
    struct Impl;
    explicit Executable(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

/// One submitted run of a session. A value.
struct Run {
    uint64_t number = 0;  // counts a session's runs from 1; 0: none
};

/// The outputs of a node that was asked for, right after it ran and before what follows it. Valid during the call.
class NodeOutputs {
public:
    virtual size_t count() const = 0;
    /// Gets, and sets, the canonical bytes of an output's base value, from `offset`.
    virtual Status read(size_t index, std::span<std::byte> bytes, uint64_t offset = 0) const = 0;
    virtual Status write(size_t index, std::span<const std::byte> bytes, uint64_t offset = 0) = 0;

protected:
    ~NodeOutputs() = default;
};
/// Whether a node's outputs shall be shown; asked once for each node, in order, before anything is prepared.
using Ask = std::function<bool(NodeId node)>;
/// Gets what was asked for, in running order. A failure ends the run and is its answer.
using Show = std::function<Status(NodeId node, NodeOutputs &outputs)>;

class Session {
public:
    /// `devices` in order of priority; the last one is the fallback. At least one.
    static Result<std::unique_ptr<Session>> create(std::shared_ptr<Registry> registry,
                                                   std::vector<std::shared_ptr<Device>> devices,
                                                   SessionOptions options);
    ~Session();
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    std::span<const std::shared_ptr<Device>> devices() const;
    uint32_t slots() const;

    /// For each weight and state of the graph the first device, and there the first buffer type, that supports all
    /// nodes which read it (pins kept); states and the nodes that touch them stay together. unsupported names the
    /// tensor, its type and each device's reason.
    Result<std::vector<TensorHome>> place_tensors(const Graph &graph);

    /// The same for tensors that may be too large: from the last group to the first, each goes to the first device that
    /// has room for it and for none of those behind it on a later device, so that the first device gets the last
    /// groups; what has no room goes to the fallback. Room is what a device's adapter measures as free now, without
    /// 1/32 and without what `measure` says of the graphs; a device that can't tell has room for all. out_of_memory:
    /// groups that were asked for have no room; the message has the bytes.
    Result<std::vector<TensorHome>> place_tensors(const Graph &graph, const Offload &offload);

    /// Whether a node of this op would run through its decomposition where it is placed, with tensors in these homes.
    Result<bool> expands(const Graph &graph, std::span<const TensorHome> homes, std::string_view op_name);

    /// Placement, split, plans, memory; allocates what the session's arenas lack. `tensors` holds every weight and
    /// state of the graph, with the graph's type and shape. The tensors' buffers are kept alive by the executable.
    /// The same graph with the same tensors gives the same executable again, as long as it is among the last used ones
    /// and no device has changed: that costs one look-up. `ask` names nodes whose outputs the runs are to show; each
    /// ends a segment, all else runs fused as without.
    Result<std::shared_ptr<Executable>> prepare(const Graph &graph, const TensorMap &tensors, const Ask &ask = {});

    /// The exact bytes that `prepare` would need on each device with tensors in these homes, without allocating any of
    /// them. The next `prepare` of this graph with such tensors uses the very plan that was measured.
    Result<std::vector<DeviceMemory>> measure(const Graph &graph, std::span<const TensorHome> homes);

    /// What `prepare` would do with tensors in these homes: the whole schedule, its memory included. Allocates none of it.
    Result<std::shared_ptr<const Schedule>> plan(const Graph &graph, std::span<const TensorHome> homes);

    /// Sets an input of the next run, whole, contiguous; the bytes have been copied when it returns. Waits for the run
    /// that used the same slot before. An input that isn't written keeps its value. Allocates nothing, unless a device
    /// has changed since (an option was set): then the graph is prepared anew, and all its inputs have to be written
    /// again.
    Status input_write(Executable &executable, ValueId input, std::span<const std::byte> bytes);
    /// As input_write, but the bytes are read where they are, during the next run: they stay valid and unchanged until
    /// that run has ended.
    Status input_borrow(Executable &executable, ValueId input, std::span<const std::byte> bytes);

    /// Queues a run and returns; first waits for the run `slots` runs before. A failure of an earlier run that nobody
    /// has heard of yet is answered here, and this run isn't queued then. Allocates nothing.
    Result<Run> submit(Executable &executable, uint64_t cancel_token = 0);
    /// Waits for one run and those before. A failure is answered once, and has ended all runs that were queued behind;
    /// nothing is in flight then, and the session is as good as new. cancelled where a token was raised; else the first
    /// failure, with device and nodes.
    Status wait(Run run);
    /// Waits for all runs.
    Status synchronize();
    /// submit and wait.
    Status run(Executable &executable, uint64_t cancel_token = 0);
    /// Runs node by node where nodes were asked for, ranges between them as one; shows each. One device works at a time.
    Status run(Executable &executable, const Show &show, uint64_t cancel_token = 0);

    /// Gets an output of the last run of this executable, for which it waits; from `offset` in its canonical bytes.
    /// Valid until the executable has been submitted `slots` times more. Allocates nothing.
    Status read(const Executable &executable, ValueId output, std::span<std::byte> bytes, uint64_t offset = 0);
    /// The same of one of its last `slots` runs; invalid_argument for another.
    Status read(const Executable &executable, Run run, ValueId output, std::span<std::byte> bytes, uint64_t offset = 0);
    /// The output's bytes where they lie, if the CPU can read them there; else null. Of the last run, which must have
    /// ended; valid until the executable has been submitted `slots` times more, or a prepare.
    const std::byte *peek(const Executable &executable, ValueId output) const;
    /// The same of one of its last `slots` runs; null for another.
    const std::byte *peek(const Executable &executable, Run run, ValueId output) const;

    /// Copies weights and states of a graph into memory of this session's devices, wherever place_tensors says; `tensors`
    /// may lie anywhere. With a session of another device this makes the whole graph runnable there.
    Result<TensorMap> copy_tensors(const Graph &graph, const TensorMap &tensors);

    SessionCounters counters() const;

private:
    friend class Comparison;
    struct Impl;
    explicit Session(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tenon
