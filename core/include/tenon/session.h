// Runs graphs: devices, streams and arenas, and the executables that share them. One thread at a time per session;
// errors leave the session usable.
//
//   auto session = Session::create(registry, devices, {});
//   auto homes   = session->place_tensors(graph);                  // where each weight and state should lie
//   ... load weights into tensors there ...
//   auto exe     = session->prepare(graph, tensors);                // placement, plans, memory: once
//   session->write(*exe, graph.find("tokens"), bytes); session->run(*exe); session->read(*exe, graph.find("logits"),
//   out);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/graph.h"
#include "tenon/registry.h"
#include "tenon/schedule.h"
#include "tenon/status.h"
#include "tenon/tensor.h"

namespace tenon {

/// Weights and states by their names in graphs.
using TensorMap = std::map<std::string, Tensor, std::less<>>;

/// Where a weight or state should lie so that all its uses are supported.
struct TensorHome {
    ValueId value = k_no_value;
    uint32_t device = 0;  // index into Session::devices
    BufferType buffer_type;
};

struct SessionOptions {
    std::vector<Pin> pins;
};

/// What has been made so far; all only rise. A steady loop raises none of them but `runs`.
struct SessionCounters {
    uint64_t schedules = 0;  // placements made
    uint64_t plans = 0;      // segments prepared
    uint64_t buffers = 0;    // device buffers allocated, arenas included
    uint64_t buffer_bytes = 0;
    uint64_t binds = 0;
    uint64_t runs = 0;
    uint64_t copies = 0;  // values carried between devices
    uint64_t copied_bytes = 0;
};

/// A graph made ready: its schedule, and plans bound to the session's memory. Made by Session::prepare, used only with
/// it.
class Executable {
public:
    ~Executable();
    const Schedule &schedule() const;

private:
    friend class Session;
    struct Impl;
    explicit Executable(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

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

    /// For each weight and state of the graph the first device, and there the first buffer type, that supports all
    /// nodes which read it (pins kept); states and the nodes that touch them stay together. unsupported names the
    /// tensor, its type and each device's reason.
    Result<std::vector<TensorHome>> place_tensors(const Graph &graph);

    /// Whether a node of this op would run through its decomposition where it is placed.
    Result<bool> expands(const Graph &graph, std::string_view op_name);

    /// Placement, split, plans, memory; allocates what the session's arenas lack. `tensors` holds every weight and
    /// state of the graph, with the graph's type and shape. The tensors' buffers are kept alive by the executable.
    Result<std::shared_ptr<Executable>> prepare(const Graph &graph, const TensorMap &tensors);

    /// The exact bytes that `prepare` would need on each device, without allocating any of them.
    Result<std::vector<DeviceMemory>> measure(const Graph &graph, const TensorMap &tensors);

    /// Sets an input, whole, contiguous. Not while a run is in flight. Allocates nothing, unless a device has changed since
    /// (an option was set): then the graph is prepared anew, and all its inputs have to be written again.
    Status write(Executable &executable, ValueId input, std::span<const std::byte> bytes);
    /// Runs to the end. cancelled where the token was raised; else the first failure, with device and nodes. After a
    /// failure nothing is in flight. Allocates nothing (but for error texts).
    Status run(Executable &executable, uint64_t cancel_token = 0);
    /// Gets an output, from `offset` in its canonical bytes. Not while a run is in flight. Allocates nothing.
    Status read(const Executable &executable, ValueId output, std::span<std::byte> bytes, uint64_t offset = 0);
    /// The output's bytes where they lie, if the CPU can read them there; else null. Valid until the next run or
    /// prepare.
    const std::byte *peek(const Executable &executable, ValueId output) const;

    SessionCounters counters() const;

private:
    struct Impl;
    explicit Session(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

}  // namespace tenon
