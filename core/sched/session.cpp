// Session's entry points: what each promises is checked here, and nothing throws beyond them.
#include "tenon/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/no_throw.h"
#include "sched/homes.h"
#include "sched/session_impl.h"
#include "sched/shown.h"

namespace tenon {

namespace {

uint64_t new_tensor_map_id() {
    // Ids only have to differ: they tell contents apart without looking at them.
    static std::atomic<uint64_t> last{0};
    return ++last;
}

}  // namespace

void TensorMap::set(std::string name, Tensor tensor) {
    tensors_.insert_or_assign(std::move(name), std::move(tensor));
    id_ = new_tensor_map_id();
}

void TensorMap::erase(std::string_view name) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return;
    tensors_.erase(found);
    id_ = new_tensor_map_id();
}

const Tensor *TensorMap::find(std::string_view name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? nullptr : &found->second;
}

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::~Executable() = default;
const Schedule &Executable::schedule() const {
    return impl_->compiled->schedule;
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
std::span<const std::shared_ptr<Device>> Session::devices() const {
    return impl_->devices.list;
}
uint32_t Session::slots() const {
    return impl_->slots;
}
SessionCounters Session::counters() const {
    return impl_->counters;
}

Result<std::unique_ptr<Session>> Session::create(std::shared_ptr<Registry> registry, DeviceList devices,
                                                 SessionOptions options) {
    return no_throw([&]() -> Result<std::unique_ptr<Session>> {
        TENON_ASSIGN(auto impl, Impl::create(std::move(registry), std::move(devices), std::move(options)));
        return std::unique_ptr<Session>(new Session(std::move(impl)));
    });
}

Result<std::vector<TensorHome>> Session::place_tensors(const Graph &graph) {
    return no_throw([&] { return choose_homes(graph, impl_->devices, impl_->pins); });
}

Result<std::shared_ptr<Executable>> Session::prepare(const Graph &graph, const TensorMap &tensors, const Ask &ask) {
    return no_throw([&]() -> Result<std::shared_ptr<Executable>> {
        ExecutableKey key{graph.hash(), graph.names(), tensors.id(), {}};
        for (NodeId node = 0; ask && node < graph.nodes().size(); ++node)
            if (ask(node)) key.observed.push_back(node);
        if (auto found = impl_->cache.find(key)) {
            if (impl_->is_current(found->impl_->generations)) {
                ++impl_->counters.cache_hits;
                return found;
            }
            impl_->cache.erase(key);
        }
        auto executable = std::make_unique<Executable::Impl>();
        TENON_TRY(impl_->prepare(*executable, graph, tensors, key.observed));
        std::shared_ptr<Executable> made(new Executable(std::move(executable)));
        impl_->cache.put(key, made);
        return made;
    });
}

namespace {

/// Every weight and state has a home.
Result<BoundTypes> types_of(const Graph &graph, std::span<const TensorHome> homes) {
    BoundTypes bound(graph.values().size());
    for (const TensorHome &home : homes) {
        if (home.value >= graph.values().size())
            return Status::invalid_argument(fmt::format("the graph has no value {}", home.value));
        bound.bind(home.value, home.buffer_type);
    }
    for (ValueId id = 0; id < graph.values().size(); ++id) {
        const Value &value = graph.values()[id];
        if (is_tensor(value) && bound.of_value[id] == k_no_value)
            return Status::invalid_argument(fmt::format("no home was given for '{}'", value.name));
    }
    return bound;
}

}  // namespace

Result<std::vector<DeviceMemory>> Session::measure(const Graph &graph, std::span<const TensorHome> homes) {
    return no_throw([&]() -> Result<std::vector<DeviceMemory>> {
        TENON_ASSIGN(BoundTypes bound, types_of(graph, homes));
        std::vector<uint64_t> generations = impl_->generations();
        TENON_ASSIGN(auto compiled, impl_->compile_graph(graph, bound, {}));
        std::vector<DeviceMemory> memory(compiled->schedule.memory().begin(), compiled->schedule.memory().end());
        constexpr size_t k_kept = 4;
        if (impl_->measured.size() == k_kept) impl_->measured.erase(impl_->measured.begin());
        impl_->measured.push_back(
            {graph.hash(), graph.names(), std::move(bound), std::move(generations), std::move(compiled)});
        return memory;
    });
}

Result<std::shared_ptr<const Schedule>> Session::plan(const Graph &graph, std::span<const TensorHome> homes) {
    return no_throw([&]() -> Result<std::shared_ptr<const Schedule>> {
        TENON_ASSIGN(const BoundTypes bound, types_of(graph, homes));
        TENON_ASSIGN(auto compiled, impl_->compile_graph(graph, bound, {}));
        return std::make_shared<const Schedule>(std::move(compiled->schedule));
    });
}

namespace {

/// An input or output inside its base's tensor, in a slot.
struct Range {
    Located at;
    uint64_t offset, bytes;
};

Result<Range> range_of(const BoundGraph &executable, uint32_t slot, ValueId id, uint64_t offset, uint64_t bytes,
                       uint32_t flag) {
    const Graph &graph = executable.compiled->graph();
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
    const uint64_t start = value.view_of == k_no_value ? 0 : value.offset;
    return Range{executable.locate(executable.compiled->stored_of_value[id], slot), start + offset, bytes};
}

Result<Range> whole_input(const BoundGraph &executable, ValueId input, std::span<const std::byte> bytes) {
    TENON_ASSIGN(const Range range,
                 range_of(executable, executable.next_slot(), input, 0, bytes.size(), TN_VALUE_INPUT));
    const Value &value = executable.compiled->graph().values()[input];
    if (bytes.size() != uint64_t(*canonical_bytes(value.type, value.shape.sizes())))
        return Status::invalid_argument(
            fmt::format("the input '{}' is written whole, not {} bytes of it", value.name, bytes.size()));
    return range;
}

void note_written(BoundGraph &executable, ValueId id, const void *borrowed) {
    BoundInput &input = executable.inputs[executable.input_of[id]];
    input.latest_slot = executable.next_slot();
    input.slots[input.latest_slot] = {++input.latest, borrowed};
}

}  // namespace

Status Session::input_write(Executable &executable, ValueId input, std::span<const std::byte> bytes) {
    return no_throw([&]() -> Status {
        BoundGraph &graph = *executable.impl_;
        TENON_TRY(impl_->refresh(graph));
        TENON_TRY(impl_->pipeline->make_room());
        TENON_ASSIGN(const Range range, whole_input(graph, input, bytes));
        TENON_TRY(range.at.buffer->set(range.at.value, 0, bytes.data(), bytes.size()));
        note_written(graph, input, nullptr);
        return {};
    });
}

Status Session::input_borrow(Executable &executable, ValueId input, std::span<const std::byte> bytes) {
    return no_throw([&]() -> Status {
        BoundGraph &graph = *executable.impl_;
        TENON_TRY(impl_->refresh(graph));
        TENON_TRY(impl_->pipeline->make_room());
        TENON_TRY(whole_input(graph, input, bytes).status());
        // A device that reads the input in another's memory can't be made to wait for its being set there.
        const auto &foreign = graph.compiled->order.foreign_uses();
        const bool is_copied_only = std::ranges::none_of(foreign, [&](const auto &use) {
            if (use.base != input) return false;
            const Segment &segment = graph.compiled->schedule.segments()[use.segment];
            return std::ranges::none_of(segment.copies(), [&](uint32_t copy) {
                return graph.compiled->schedule.copies()[copy].value == input;
            });
        });
        if (!is_copied_only || std::ranges::count(graph.compiled->graph().outputs(), input))
            return input_write(executable, input, bytes);
        note_written(graph, input, bytes.data());
        return {};
    });
}

Result<Run> Session::submit(Executable &executable, uint64_t cancel_token) {
    return no_throw([&]() -> Result<Run> {
        TENON_TRY(impl_->make_ready(*executable.impl_));
        TENON_ASSIGN(const uint64_t number,
                     impl_->pipeline->submit(executable.shared_from_this(), *executable.impl_, cancel_token));
        return Run{number};
    });
}

Status Session::wait(Run run) {
    return no_throw([&] { return impl_->pipeline->wait(run.number); });
}

Status Session::synchronize() {
    return no_throw([&] { return impl_->pipeline->wait_all(); });
}

Status Session::run(Executable &executable, uint64_t cancel_token) {
    return no_throw([&]() -> Status {
        TENON_ASSIGN(const Run run, submit(executable, cancel_token));
        return impl_->pipeline->wait(run.number);
    });
}

Status Session::run(Executable &executable, const Show &show, uint64_t cancel_token) {
    return no_throw([&]() -> Status {
        TENON_TRY(impl_->pipeline->wait_all());
        TENON_TRY(impl_->make_ready(*executable.impl_));
        ShownRun run(*impl_->pipeline, executable.shared_from_this(), *executable.impl_, cancel_token);
        for (;;) {
            TENON_ASSIGN(const NodeId node, run.next());
            if (node == k_no_value) return run.finish();
            if (!show) continue;
            ShownRun::Outputs outputs(run, node);
            TENON_TRY(show(node, outputs));
        }
    });
}

Status Session::read(const Executable &executable, ValueId output, std::span<std::byte> bytes, uint64_t offset) {
    return no_throw(
        [&] { return impl_->read(*executable.impl_, executable.impl_->last_slot(), output, bytes, offset); });
}

Status Session::read(const Executable &executable, Run run, ValueId output, std::span<std::byte> bytes,
                     uint64_t offset) {
    return no_throw([&]() -> Status {
        const auto slot = executable.impl_->slot_of(run.number);
        if (!slot)
            return Status::invalid_argument(fmt::format("run {} isn't among the last {} of this executable", run.number,
                                                        executable.impl_->slot_count()));
        return impl_->read(*executable.impl_, *slot, output, bytes, offset);
    });
}

Status Session::Impl::read(const BoundGraph &graph, uint32_t slot, ValueId output, std::span<std::byte> bytes,
                           uint64_t offset) {
    TENON_ASSIGN(const Range range, range_of(graph, slot, output, offset, bytes.size(), TN_VALUE_OBSERVED));
    TENON_TRY(pipeline->wait(graph.run_in[slot]));
    return range.at.buffer->get(range.at.value, range.offset, bytes.data(), bytes.size());
}

const std::byte *Session::peek(const Executable &executable, ValueId output) const {
    return impl_->peek(*executable.impl_, executable.impl_->last_slot(), output);
}

const std::byte *Session::peek(const Executable &executable, Run run, ValueId output) const {
    const auto slot = executable.impl_->slot_of(run.number);
    return slot ? impl_->peek(*executable.impl_, *slot, output) : nullptr;
}

const std::byte *Session::Impl::peek(const BoundGraph &graph, uint32_t slot, ValueId output) const {
    const auto range = range_of(graph, slot, output, 0, 0, TN_VALUE_OBSERVED);
    if (!range.ok() || !range->at.buffer->base() || range->at.buffer->type().is_packed()) return nullptr;
    return static_cast<const std::byte *>(range->at.buffer->base()) + range->at.value.offset + range->offset;
}

Result<bool> Session::expands(const Graph &graph, std::span<const TensorHome> homes, std::string_view op_name) {
    return no_throw([&]() -> Result<bool> {
        TENON_ASSIGN(const BoundTypes bound, types_of(graph, homes));
        TENON_ASSIGN(const auto pinned, resolve_pins(graph, impl_->devices.list, impl_->pins));
        TypeSupport types;
        Decompositions formulas(graph);
        const ValueTable values(graph);
        TENON_ASSIGN(const auto placed,
                     place_graph(graph, values, {impl_->devices, bound, pinned, {}, types}, formulas));
        for (NodeId id = 0; id < graph.nodes().size(); ++id)
            if (graph.op(graph.nodes()[id]).name == op_name &&
                !placed.support.at(placed.placement.nodes[id].device, id).claimed())
                return true;
        return false;
    });
}

}  // namespace tenon
