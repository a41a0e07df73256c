// The mock plugin: instance, adapters, devices. device.h lists the options.
#include <bit>
#include <chrono>

#include "memory.h"
#include "plan.h"
#include "stream.h"

namespace mock {

// ---- Adapter ----

MockAdapter::MockAdapter(Instance &instance, int index)
    : Adapter(instance, {.name = join("mock:", index),
                         .description = "a device for tests",
                         .bus_id = join("mock-bus:", index),
                         .kind = TN_KIND_ACCELERATOR,
                         .capabilities = TN_CAP_ASYNC | TN_CAP_SOFTWARE}) {}  // software: no default list takes it

Adapter::Memory MockAdapter::memory() const {
    const uint64_t all = total.load(), taken = used.load();
    return {all, all > taken ? all - taken : 0};
}

std::unique_ptr<Device> MockAdapter::open(Options &options) {
    return std::make_unique<MockDevice>(*this, options);
}

// ---- Device ----

MockDevice::MockDevice(MockAdapter &adapter, Options &options) : Device(adapter) {
    choose_ops(options.text("ops").value_or("all"), options.flag("composites", false));
    const std::string fuse = options.text("fuse").value_or("0");
    if (fuse != "0" && fuse != "1" && fuse != "random")
        fail(TN_INVALID_ARGUMENT, "option 'fuse': '", fuse, "' is neither 0, 1 nor random");
    fuse_ = fuse == "random" ? Fuse::kRandom : fuse == "1" ? Fuse::kPatterns : Fuse::kNothing;
    offload_ = options.flag("offload", false);
    peer_ = options.flag("peer", false);
    hazards_ = options.flag("hazards", false);
    seed_ = static_cast<uint64_t>(options.number("seed", 1, 0, INT64_MAX));
    read_faults(options);
    read_meeting(options);
    read_memory(options);
}

void MockDevice::read_faults(Options &options) {
    faults.random = seed_;
    if (const auto text = options.text("delay_us")) set_option("delay_us", *text);
    for (const FailPoint &point : kFailPoints) {
        if (const auto text = options.text(point.option)) set_option(point.option, *text);
    }
    wrong_from_ = static_cast<uint64_t>(options.number("wrong_from", 0, 0, INT64_MAX));
    const auto wrong = options.text("wrong");
    if (!wrong) return;
    const OpInfo *op = find_op(*wrong);
    if (op == nullptr || find_kernel(op->id) == nullptr)
        fail(TN_INVALID_ARGUMENT, "option 'wrong': no op '", *wrong, "'");
    wrong_op_ = op->id;
}

void MockDevice::read_meeting(Options &options) {
    meet_ = static_cast<uint64_t>(options.number("meet", 0, 0, 4096));
    meet_first_ = static_cast<uint64_t>(options.number("meet_first", 0, 0, INT64_MAX));
    meet_runs_ = static_cast<uint64_t>(options.number("meet_runs", INT64_MAX, 0, INT64_MAX));
    meet_ms_ = static_cast<uint64_t>(options.number("meet_ms", 20000, 1, 1 << 30));
}

void MockDevice::meet() {
    if (meet_ == 0) return;
    const uint64_t run = runs_.fetch_add(1);
    if (run < meet_first_ || run - meet_first_ >= meet_runs_) return;
    if (!static_cast<MockInstance &>(instance()).meeting.join(meet_, meet_ms_))
        fail(TN_INTERNAL, "nobody came to meet run ", run);
}

void MockDevice::read_memory(Options &options) {
    const int64_t mb = options.number("memory_mb", 4096, 0, 1 << 20);
    const auto max_bytes = static_cast<uint64_t>(options.number("max_buffer_bytes", 0, 0, INT64_MAX));
    const auto alignment = static_cast<uint64_t>(options.number("alignment", 256, 8, 1 << 20));
    if (!std::has_single_bit(alignment))
        fail(TN_INVALID_ARGUMENT, "option 'alignment': ", alignment, " isn't a power of two");
    mock_adapter().total = static_cast<uint64_t>(options.number("memory_bytes", mb << 20, 0, INT64_MAX));
    add_buffer_type(
        std::make_unique<MockBufferType>(*this, join("mock.", adapter().info().name), alignment, max_bytes));
}

void MockDevice::choose_ops(std::string_view names, bool composites) {
    if (names == "all") {
        for (const auto &kernels : {elementwise_kernels(), row_kernels(), product_kernels(), composite_kernels()}) {
            for (const Kernel &k : kernels) {
                if (composites || find_op(k.op)->kind == OpKind::kPrimitive) ops_.insert(k.op);
            }
        }
        return;
    }
    while (!names.empty()) {
        const size_t end = std::min(names.find('+'), names.size());
        const std::string_view name = names.substr(0, end);
        const OpInfo *op = find_op(name);
        if (op == nullptr || find_kernel(op->id) == nullptr)
            fail(TN_INVALID_ARGUMENT, "option 'ops': no op '", name, "'");
        ops_.insert(op->id);
        names.remove_prefix(std::min(end + 1, names.size()));
    }
}

Support MockDevice::support(const GraphView &graph, const NodeView &node) const {
    if (!ops_.contains(node.op)) return Support::no("the op isn't among the device's");
    for (const auto &list : {node.inputs, node.outputs}) {
        for (uint32_t v : list) {
            const BufferTypeView *type = v == TN_NONE ? nullptr : graph.buffer_type_of(v);
            if (type != nullptr && !supports_buffer_type(*type))
                return Support::no("value ", v, " lies in '", type->name, "'");
        }
    }
    Support support = find_kernel(node.op)->check(node);
    if (support && offload_ && node.op == TN_OP_LINEAR) return Support::offload();
    return support;
}

/// Its own memory only; that of another mock device is foreign.
bool MockDevice::supports_buffer_type(const BufferTypeView &type) const {
    const BufferTypeView &own = default_buffer_type().view();
    return type.owner == own.owner && type.name == own.name;
}

std::unique_ptr<Plan> MockDevice::prepare(std::shared_ptr<const GraphView> graph) {
    faults.check(Call::kPrepare);
    return std::make_unique<MockPlan>(*this, std::move(graph));
}

void MockDevice::set_option(std::string_view key, std::string_view value) {
    const int64_t number = parse_number(key, value, 0, INT64_MAX / 2);
    if (key == "delay_us") {
        faults.delay_us = static_cast<uint64_t>(number);
    } else if (!faults.set_countdown(key, number)) {
        fail(TN_NOT_FOUND, "no option '", key, "' that can be changed");
    }
}

std::optional<std::string> MockDevice::option(std::string_view key) const {
    if (key == "delay_us") return join(faults.delay_us.load());
    const auto countdown = faults.countdown(key);
    return countdown ? std::optional(join(*countdown)) : std::nullopt;
}

std::unique_ptr<Stream> MockDevice::make_stream() {
    return std::make_unique<MockStream>(*this);
}

std::unique_ptr<Event> MockDevice::make_event() {
    return std::make_unique<MockEvent>(*this);
}

// ---- Instance ----

bool Meeting::join(uint64_t count, uint64_t ms) {
    std::unique_lock lock(mutex_);
    const uint64_t round = round_;
    if (++here_ >= count) {
        here_ = 0;
        ++round_;
        changed_.notify_all();
        return true;
    }
    if (changed_.wait_for(lock, std::chrono::milliseconds(ms), [&] { return round_ != round; })) return true;
    --here_;
    return false;
}

void MockInstance::load(Registrar &registrar) {
    const auto text = host().option("devices");
    const int64_t count = text ? parse_number("devices", *text, 0, 4096) : 2;
    for (int i = 0; i < count; ++i) registrar.add(std::make_unique<MockAdapter>(*this, i));
    if (count == 0) host().log(TN_LOG_INFO, "mock: the option 'devices' asks for none");
}

}  // namespace mock

TENON_PLUGIN(mock::MockInstance, "mock", "tenon tests", "0.1.0", "6d6f636b-0000-4000-8000-000000000001",
             TN_PLUGIN_CLOSABLE)
