#include "sched/session_impl.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

Result<std::unique_ptr<Session::Impl>> Session::Impl::create(std::shared_ptr<Registry> registry, DeviceList devices,
                                                             SessionOptions options) {
    if (devices.empty() || std::ranges::count(devices, nullptr))
        return Status::invalid_argument("a session needs at least one device, and no null one");
    if (options.slots == 0) return Status::invalid_argument("a session needs at least one slot");
    if (!options.compute_in.empty() && options.compute_in.size() != devices.size())
        return Status::invalid_argument(fmt::format("{} buffer types to compute in were given for {} devices",
                                                    options.compute_in.size(), devices.size()));
    auto impl = std::make_unique<Impl>();
    impl->registry = std::move(registry);
    impl->pins = std::move(options.pins);
    impl->slots = options.slots;
    impl->cache = ExecutableCache(options.cached_executables);
    impl->arenas.resize(devices.size());
    for (size_t d = 0; d < devices.size(); ++d) {
        if (options.compute_in.empty()) {
            impl->devices.types.push_back(devices[d]->default_buffer_type());
            continue;
        }
        TENON_ASSIGN(const bool usable, devices[d]->supports(options.compute_in[d]));
        if (!usable || options.compute_in[d].is_packed())
            return Status::unsupported(
                fmt::format("{} can't compute in memory of {}", devices[d]->name(), options.compute_in[d].name()));
        impl->devices.types.push_back(options.compute_in[d]);
    }
    impl->devices.list = std::move(devices);
    TENON_ASSIGN(impl->pipeline, Pipeline::create(impl->devices, impl->slots, Logger(std::move(options.log))));
    return impl;
}

std::vector<uint64_t> Session::Impl::generations() const {
    std::vector<uint64_t> out;
    for (const auto &device : devices.list) out.push_back(device->generation());
    return out;
}

bool Session::Impl::is_current(const std::vector<uint64_t> &of) const {
    for (size_t d = 0; d < devices.list.size(); ++d)
        if (of[d] != devices.list[d]->generation()) return false;
    return true;
}

Result<std::unique_ptr<Compiled>> Session::Impl::compile_graph(const Graph &graph, const BoundTypes &bound,
                                                               std::span<const NodeId> observed) {
    TENON_ASSIGN(const auto pinned, resolve_pins(graph, devices.list, pins));
    TypeSupport types;  // asked anew each time: devices may have changed in between
    TENON_ASSIGN(auto compiled, compile(graph, {devices, bound, pinned, observed, types, slots}));
    ++counters.schedules;
    counters.plans += compiled->segments.size();
    return compiled;
}

std::unique_ptr<Compiled> Session::Impl::take_measured(const Graph &graph, const BoundTypes &bound) {
    const auto found = std::ranges::find_if(measured, [&](const Measured &m) {
        return m.graph == graph.hash() && m.names == graph.names() && m.bound.types == bound.types &&
               m.bound.of_value == bound.of_value && is_current(m.generations);
    });
    if (found == measured.end()) return nullptr;
    auto compiled = std::move(found->compiled);
    measured.erase(found);
    return compiled;
}

Result<std::shared_ptr<Buffer>> Session::Impl::allocate_chunk(uint32_t device, uint64_t bytes, const char *what) {
    const auto try_once = [&] { return devices.types[device].alloc(bytes, Usage::compute); };
    auto buffer = try_once();
    // Executables that nobody holds may hold memory.
    if (buffer.status().code() == Code::out_of_memory && pipeline->wait_all().ok() && cache.drop_unused())
        buffer = try_once();
    if (!buffer.ok())
        return Status(buffer.status()).in([&] {
            return fmt::format("{} of {} bytes on {}", what, bytes, devices.list[device]->name());
        });
    ++counters.buffers;
    counters.buffer_bytes += bytes;
    return buffer;
}

Result<Chunks> Session::Impl::allocate(uint32_t device, std::span<const uint64_t> chunk_bytes, const char *what) {
    Chunks chunks;
    for (uint64_t bytes : chunk_bytes) {
        TENON_ASSIGN(auto chunk, allocate_chunk(device, bytes, what));
        chunks.push_back(std::move(chunk));
    }
    return chunks;
}

Status Session::Impl::allocate_for(BoundGraph &executable) {
    const Areas &areas = *executable.compiled->areas;
    executable.constants.resize(devices.count());
    executable.slots.assign(slots, std::vector<Chunks>(devices.count()));
    for (uint32_t d = 0; d < devices.count(); ++d) {
        TENON_ASSIGN(executable.constants[d],
                     allocate(d, areas.memory(Storage::Kind::constant, d).chunk_bytes, "constants"));
        for (auto &slot : executable.slots) {
            TENON_ASSIGN(slot[d], allocate(d, areas.memory(Storage::Kind::slot, d).chunk_bytes, "inputs and outputs"));
        }
        const auto &wanted = areas.memory(Storage::Kind::arena, d).chunk_bytes;
        for (size_t i = 0; i < wanted.size(); ++i) {
            if (i < arenas[d].size() && arenas[d][i]->bytes() >= wanted[i]) continue;
            // Executables that are bound to the old chunk keep it alive until they are bound again.
            TENON_ASSIGN(auto chunk, allocate_chunk(d, wanted[i], "arena"));
            if (i < arenas[d].size())
                arenas[d][i] = std::move(chunk);
            else
                arenas[d].push_back(std::move(chunk));
        }
    }
    return {};
}

Status Session::Impl::bind_to_arenas(BoundGraph &executable) {
    TENON_TRY(pipeline->wait_all());
    ++counters.binds;
    return bind_plans(executable, arenas);
}

bool Session::Impl::is_bound(const BoundGraph &executable) const {
    return executable.bound && executable.arenas == arenas;
}

Status Session::Impl::prepare(BoundGraph &executable, const Graph &graph, const TensorMap &tensors,
                              std::span<const NodeId> observed) {
    executable.generations = generations();
    TENON_ASSIGN(const BoundTypes bound, types_of(graph, tensors));
    if (observed.empty()) executable.compiled = take_measured(graph, bound);
    if (!executable.compiled) {
        TENON_ASSIGN(executable.compiled, compile_graph(graph, bound, observed));
    }
    TENON_TRY(attach(*executable.compiled, tensors));
    TENON_TRY(allocate_for(executable));
    TENON_TRY(bind_to_arenas(executable));
    TENON_TRY(add_inputs_and_events(executable));
    TENON_TRY(pipeline->make_ready(executable));
    return write_constants(executable);
}

Status Session::Impl::refresh(BoundGraph &executable) {
    if (is_current(executable.generations)) return {};
    TENON_TRY(pipeline->wait_all());
    TensorMap tensors;
    for (const Tensor &tensor : executable.compiled->tensors) tensors.set(tensor.name(), tensor);
    BoundGraph fresh;
    const Schedule &schedule = executable.compiled->schedule;
    const std::vector<NodeId> observed(schedule.observed().begin(), schedule.observed().end());
    TENON_TRY(prepare(fresh, Graph(schedule.graph()), tensors, observed));
    std::swap(executable, fresh);
    last_submitted = nullptr;
    return {};
}

Status Session::Impl::order_states(const BoundGraph &executable) {
    const Order &order = executable.compiled->order;
    if (devices.count() == 1) return {};
    bool wait = order.shares_states();
    if (&executable != last_submitted || wait) {
        for (const auto &use : order.state_uses()) {
            const Stored &stored = executable.compiled->stored[executable.compiled->stored_of_value[use.base]];
            const Tensor &tensor = executable.compiled->tensors[stored.storage.index];
            // Buffers hold several states; two that lie in one are told apart by nobody but their offset.
            const void *key = reinterpret_cast<const char *>(tensor.buffer().get()) + tensor.offset();
            const uint32_t device = order.shares_states() ? k_no_value : use.device;
            const auto [user, first] = state_users.try_emplace(key, device);
            wait = wait || user->second != device;
            user->second = device;
        }
    }
    return wait ? pipeline->wait_all() : Status();
}

Status Session::Impl::make_ready(BoundGraph &executable) {
    if (!is_current(executable.generations))
        return Status::invalid_state("a device has changed since the inputs were written; write them again");
    if (!is_bound(executable)) TENON_TRY(bind_to_arenas(executable));
    TENON_TRY(pipeline->make_room());
    TENON_TRY(order_states(executable));
    TENON_TRY(keep_inputs(executable));
    last_submitted = &executable;
    ++counters.runs;
    const auto copies = executable.compiled->schedule.copies();
    counters.copies += copies.size();
    for (const Copy &copy : copies) counters.copied_bytes += copy.bytes;
    return {};
}

Status Session::Impl::keep_inputs(BoundGraph &executable) {
    const uint32_t slot = executable.next_slot();
    for (BoundInput &input : executable.inputs) {
        auto &here = input.slots[slot];
        if (!input.is_read || (input.latest && here.written == input.latest)) continue;
        const Value &value = executable.compiled->graph().values()[input.value];
        const auto &there = input.slots[input.latest_slot];
        if (!input.latest || there.borrowed)
            return Status::invalid_state(fmt::format("the input '{}' has not been written{}", value.name,
                                                     input.latest ? " since it was borrowed for another run" : ""));
        const uint32_t stored = executable.compiled->stored_of_value[input.value];
        const Located from = executable.locate(stored, input.latest_slot), to = executable.locate(stored, slot);
        executable.staging.resize(uint64_t(*canonical_bytes(value.type, value.shape.sizes())));
        TENON_TRY(from.buffer->get(from.value, 0, executable.staging.data(), executable.staging.size()));
        TENON_TRY(to.buffer->set(to.value, 0, executable.staging.data(), executable.staging.size()));
        here = {input.latest, nullptr};
        input.latest_slot = slot;
    }
    return {};
}

}  // namespace tenon
