// Session: the devices' lanes, the executables that share them, and where tensors should lie.
#include "tenon/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/no_throw.h"
#include "sched/execute.h"

namespace tenon {

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::~Executable() = default;
const Schedule &Executable::schedule() const {
    return impl_->compiled->schedule;
}

struct Session::Impl {
    std::shared_ptr<Registry> registry;  // outlives all that its plugins made
    DeviceList devices;
    std::vector<Pin> pins;
    std::vector<Lane> lanes;
    SessionCounters counters;

    CompileContext context() { return {devices, pins, {}}; }

    Result<std::unique_ptr<Compiled>> compile_graph(const Graph &graph, const TensorMap &tensors) {
        CompileContext shared = context();
        TENON_ASSIGN(auto compiled, compile(graph, tensors, shared));
        ++counters.schedules;
        counters.plans += compiled->plans;
        return compiled;
    }

    Result<std::shared_ptr<Buffer>> allocate(const Device &device, const BufferType &type, uint64_t bytes,
                                             const char *what) {
        auto buffer = type.alloc(bytes, Usage::compute);
        if (!buffer.ok())
            return Status(buffer.status()).in(fmt::format("{} of {} bytes on {}", what, bytes, device.name()));
        ++counters.buffers;
        counters.buffer_bytes += bytes;
        return buffer;
    }

    Status allocate_for(BoundGraph &executable) {
        const auto memory = executable.compiled->schedule.memory();
        executable.io.resize(lanes.size());
        executable.arenas.resize(lanes.size());
        for (size_t d = 0; d < lanes.size(); ++d) {
            const BufferType type = lanes[d].device->default_buffer_type();
            if (needs(executable, Storage::Kind::io, uint32_t(d))) {
                TENON_ASSIGN(executable.io[d], allocate(*devices[d], type, memory[d].io_bytes, "inputs and outputs"));
            }
            const uint64_t have = lanes[d].arena ? lanes[d].arena->bytes() : 0;
            if (needs(executable, Storage::Kind::arena, uint32_t(d)) &&
                (!lanes[d].arena || have < memory[d].arena_bytes)) {
                // Executables that are bound to the old arena keep it alive until they are bound again.
                TENON_ASSIGN(lanes[d].arena, allocate(*devices[d], type, memory[d].arena_bytes, "arena"));
            }
        }
        for (const Copy &copy : executable.compiled->schedule.copies()) {
            const bool reachable = is_plain_host(lanes[copy.to].device->default_buffer_type());
            executable.staging.emplace_back(reachable ? 0 : copy.bytes);
        }
        return {};
    }

    Status bind_to_lanes(BoundGraph &executable) {
        ++counters.binds;
        return bind(executable, lanes);
    }

    /// Whether anything lies in that memory: an empty tensor has a place too.
    static bool needs(const BoundGraph &executable, Storage::Kind kind, uint32_t device) {
        auto there = [&](const auto &place) { return place.kind == kind && place.device == device; };
        for (const Slot &slot : executable.compiled->slots)
            if (there(slot.storage)) return true;
        for (const CompiledSegment &segment : executable.compiled->segments)
            if (std::ranges::any_of(segment.bindings, there)) return true;
        return false;
    }

    Status prepare(BoundGraph &executable, const Graph &graph, const TensorMap &tensors) {
        std::vector<uint64_t> generations;
        for (const auto &device : devices) generations.push_back(device->generation());
        TENON_ASSIGN(executable.compiled, compile_graph(graph, tensors));
        TENON_TRY(allocate_for(executable));
        TENON_TRY(bind_to_lanes(executable));
        executable.generations = std::move(generations);
        return write_constants(executable);
    }

    bool is_current(const BoundGraph &executable) const {
        for (size_t d = 0; d < devices.size(); ++d)
            if (executable.generations[d] != devices[d]->generation()) return false;
        return true;
    }

    /// What was derived from a device before it changed (an option was set) is made anew.
    Status refresh(BoundGraph &executable) {
        if (is_current(executable)) return {};
        TensorMap tensors;
        for (const Tensor &tensor : executable.compiled->tensors) tensors[tensor.name()] = tensor;
        BoundGraph fresh;
        TENON_TRY(prepare(fresh, Graph(executable.compiled->schedule.graph()), tensors));
        std::swap(executable, fresh);
        return {};
    }

    bool is_bound(const BoundGraph &executable) const {
        if (!executable.bound) return false;
        for (size_t d = 0; d < lanes.size(); ++d)
            if (executable.arenas[d] != lanes[d].arena) return false;
        return true;
    }
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
std::span<const std::shared_ptr<Device>> Session::devices() const {
    return impl_->devices;
}
SessionCounters Session::counters() const {
    return impl_->counters;
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<Registry> registry, DeviceList devices,
                                                 SessionOptions options) {
    if (devices.empty() || std::ranges::count(devices, nullptr))
        return Status::invalid_argument("a session needs at least one device, and no null one");
    auto impl = std::make_unique<Impl>();
    impl->registry = std::move(registry);
    impl->devices = std::move(devices);
    impl->pins = std::move(options.pins);
    for (const auto &device : impl->devices) {
        TENON_ASSIGN(auto stream, Stream::create(device));
        impl->lanes.push_back({device, std::move(stream), nullptr, false, nullptr});
    }
    return std::unique_ptr<Session>(new Session(std::move(impl)));
}

Result<std::vector<TensorHome>> Session::place_tensors(const Graph &graph) {
    return no_throw([&] {
        CompileContext context = impl_->context();
        return choose_homes(graph, context);
    });
}

Result<std::shared_ptr<Executable>> Session::prepare(const Graph &graph, const TensorMap &tensors) {
    return no_throw([&]() -> Result<std::shared_ptr<Executable>> {
        auto executable = std::make_unique<Executable::Impl>();
        TENON_TRY(impl_->prepare(*executable, graph, tensors));
        return std::shared_ptr<Executable>(new Executable(std::move(executable)));
    });
}

Result<std::vector<DeviceMemory>> Session::measure(const Graph &graph, const TensorMap &tensors) {
    return no_throw([&]() -> Result<std::vector<DeviceMemory>> {
        TENON_ASSIGN(const auto compiled, impl_->compile_graph(graph, tensors));
        const auto memory = compiled->schedule.memory();
        return std::vector<DeviceMemory>(memory.begin(), memory.end());
    });
}

Status Session::run(Executable &executable, uint64_t cancel_token) {
    return no_throw([&]() -> Status {
        if (!impl_->is_current(*executable.impl_))
            return Status::invalid_state("a device has changed since the inputs were written; write them again");
        if (!impl_->is_bound(*executable.impl_)) TENON_TRY(impl_->bind_to_lanes(*executable.impl_));
        return execute(*executable.impl_, impl_->lanes, cancel_token, impl_->counters);
    });
}

namespace {

struct Range {
    Buffer *buffer;
    const tn_value *tensor;
    uint64_t offset, bytes;
};

/// The bytes of an input or output inside its base's tensor.
Result<Range> range_of(const BoundGraph &executable, ValueId id, uint64_t offset, uint64_t bytes, uint32_t flag) {
    const Graph &graph = executable.compiled->schedule.graph();
    if (id >= graph.values().size()) return Status::invalid_argument(fmt::format("the graph has no value {}", id));
    const Value &value = graph.values()[id];
    const bool right =
        flag == TN_VALUE_INPUT ? bool(value.flags & TN_VALUE_INPUT) : std::ranges::count(graph.outputs(), id) > 0;
    if (!right)
        return Status::invalid_argument(
            fmt::format("'{}' is no {} of the graph", value.name, flag == TN_VALUE_INPUT ? "input" : "output"));
    const uint64_t size = uint64_t(*canonical_bytes(value.type, value.shape.sizes()));
    if (offset > size || bytes > size - offset)
        return Status::invalid_argument(
            fmt::format("'{}' has {} bytes, not {} from {}", value.name, size, bytes, offset));
    const uint32_t slot = executable.compiled->slot_of_value[id];
    const uint64_t start = value.view_of == k_no_value ? 0 : value.offset;
    return Range{executable.buffers[slot], &executable.slots[slot], start + offset, bytes};
}

}  // namespace

Status Session::write(Executable &executable, ValueId input, std::span<const std::byte> bytes) {
    TENON_TRY(no_throw([&] { return impl_->refresh(*executable.impl_); }));
    TENON_ASSIGN(const Range range, range_of(*executable.impl_, input, 0, bytes.size(), TN_VALUE_INPUT));
    const Value &value = executable.schedule().graph().values()[input];
    if (bytes.size() != uint64_t(*canonical_bytes(value.type, value.shape.sizes())))
        return Status::invalid_argument(
            fmt::format("the input '{}' is written whole, not {} bytes of it", value.name, bytes.size()));
    return range.buffer->set(*range.tensor, 0, bytes.data(), bytes.size());
}

Status Session::read(const Executable &executable, ValueId output, std::span<std::byte> bytes, uint64_t offset) {
    TENON_ASSIGN(const Range range, range_of(*executable.impl_, output, offset, bytes.size(), TN_VALUE_OBSERVED));
    return range.buffer->get(*range.tensor, range.offset, bytes.data(), bytes.size());
}

const std::byte *Session::peek(const Executable &executable, ValueId output) const {
    const auto range = range_of(*executable.impl_, output, 0, 0, TN_VALUE_OBSERVED);
    if (!range.ok() || !range->buffer->base() || range->buffer->type().is_packed()) return nullptr;
    return static_cast<const std::byte *>(range->buffer->base()) + range->tensor->offset + range->offset;
}

Result<bool> Session::expands(const Graph &graph, std::string_view op_name) {
    return no_throw([&]() -> Result<bool> {
        CompileContext context = impl_->context();
        Decompositions formulas(graph);
        TENON_ASSIGN(const auto homes, place_tensors(graph));
        BoundTypes bound(graph.values().size());
        for (const TensorHome &home : homes) bound[home.value] = std::make_shared<const BufferType>(home.buffer_type);
        TENON_ASSIGN(const auto placed, place_graph(graph, bound, formulas, context));
        for (NodeId id = 0; id < graph.nodes().size(); ++id)
            if (graph.op(graph.nodes()[id]).name == op_name &&
                !placed.support.at(placed.placement.nodes[id].device, id).claimed)
                return true;
        return false;
    });
}

}  // namespace tenon
