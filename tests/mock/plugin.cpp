// The mock plugin: instance, adapters, device and memory. device.h lists its options.
#include <chrono>
#include <cstdlib>
#include <thread>

#include "device.h"

namespace mock {

// ---- Delays and failures on demand ----

void Faults::pause() {
    const uint64_t most = delay_us.load(std::memory_order_relaxed);
    if (most == 0) return;
    uint64_t z = random.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed);  // splitmix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    std::this_thread::sleep_for(std::chrono::microseconds((z ^ (z >> 31)) % (most + 1)));
}

bool Faults::hit(std::atomic<int64_t> &countdown) {
    int64_t left = countdown.load(std::memory_order_relaxed);
    while (left > 0 && !countdown.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    return left == 1;
}

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
    fuse_ = options.flag("fuse", false);
    offload_ = options.flag("offload", false);
    peer_ = options.flag("peer", false);
    adapter.total = static_cast<uint64_t>(options.number("memory_mb", 4096, 0, 1 << 20)) << 20;
    faults.random = static_cast<uint64_t>(options.number("seed", 1, 0, INT64_MAX));
    for (const char *key : {"delay_us", "fail_run", "fail_alloc", "lost"}) {
        if (const auto text = options.text(key)) set_option(key, *text);
    }
    add_buffer_type(std::make_unique<MockBufferType>(*this, join("mock.", adapter.info().name)));
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
    return std::make_unique<MockPlan>(*this, std::move(graph), fuse_);
}

void MockDevice::set_option(std::string_view key, std::string_view value) {
    const int64_t number = parse_number(key, value, 0, INT64_MAX / 2);
    if (key == "delay_us") {
        faults.delay_us = static_cast<uint64_t>(number);
    } else if (key == "fail_run") {
        faults.fail_run = number;
    } else if (key == "fail_alloc") {
        faults.fail_alloc = number;
    } else if (key == "lost") {
        faults.lost = number;
    } else {
        fail(TN_NOT_FOUND, "no option '", key, "' that can be changed");
    }
}

std::optional<std::string> MockDevice::option(std::string_view key) const {
    if (key == "delay_us") return join(faults.delay_us.load());
    if (key == "fail_run") return join(faults.fail_run.load());
    if (key == "fail_alloc") return join(faults.fail_alloc.load());
    if (key == "lost") return join(faults.lost.load());
    return std::nullopt;
}

// ---- Memory ----

MockBufferType::MockBufferType(MockDevice &device, std::string name)
    : BufferType(device, BufferTypeView{.name = std::move(name),
                                        .owner = {},
                                        .memory = TN_MEMORY_DEVICE,
                                        .flags = 0,
                                        .alignment = 256,
                                        .max_bytes = 0}) {}

std::unique_ptr<Buffer> MockBufferType::alloc(uint64_t bytes, uint32_t) {
    auto &device = static_cast<MockDevice &>(*this->device());
    if (Faults::hit(device.faults.fail_alloc)) fail(TN_OUT_OF_MEMORY, "allocation failed on demand");
    return std::make_unique<MockBuffer>(*this, bytes);
}

MockBuffer::MockBuffer(BufferType &type, uint64_t bytes) : Buffer(type, bytes) {
    MockAdapter &adapter = mock().mock_adapter();
    uint64_t used = adapter.used.load();
    do {
        if (bytes > adapter.total - std::min(used, adapter.total.load())) {
            fail(TN_OUT_OF_MEMORY, adapter.info().name, ": ", bytes, " bytes asked for, ", adapter.memory().free,
                 " free");
        }
    } while (!adapter.used.compare_exchange_weak(used, used + bytes));
    const uint64_t rounded = std::max<uint64_t>((bytes + 255) / 256 * 256, 256);
    memory_ = static_cast<std::byte *>(std::aligned_alloc(256, rounded));
    if (memory_ == nullptr) {
        adapter.used -= bytes;
        fail(TN_OUT_OF_MEMORY, adapter.info().name, ": no memory for ", bytes, " bytes");
    }
    std::memset(memory_, 0xa5, bytes);  // contents are undefined: whoever reads them notices
}

MockBuffer::~MockBuffer() {
    std::free(memory_);
    mock().mock_adapter().used -= bytes();
}

void MockBuffer::set(const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) {
    mock().faults.pause();
    bytes::set(memory_, tensor, offset, src, bytes);
}

void MockBuffer::get(const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) {
    mock().faults.pause();
    bytes::get(memory_, tensor, offset, dst, bytes);
}

void MockBuffer::fill(const ValueView &tensor, uint64_t offset, uint64_t bytes, uint8_t byte) {
    bytes::fill(memory_, tensor, offset, bytes, byte);
}

void MockBuffer::clear(uint8_t byte) {
    std::memset(memory_, byte, bytes());
}

bool MockBuffer::can_copy_from(const ValueView &, const Buffer &src, const ValueView &) const {
    return dynamic_cast<const MockBuffer *>(&src) != nullptr &&
           (src.type().device() == type().device() || mock().peer());
}

void MockBuffer::copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor) {
    mock().faults.pause();
    bytes::copy(memory_, dst, static_cast<const std::byte *>(src.device_address()), src_tensor);
}

// ---- Instance ----

class MockInstance : public Instance {
    void load(Registrar &registrar) override {
        const auto text = host().option("devices");
        const int64_t count = text ? parse_number("devices", *text, 0, 16) : 2;
        for (int i = 0; i < count; ++i) registrar.add(std::make_unique<MockAdapter>(*this, i));
        if (count == 0) host().log(TN_LOG_INFO, "mock: the option 'devices' asks for none");
    }
};

}  // namespace mock

TENON_PLUGIN(mock::MockInstance, "mock", "tenon tests", "0.1.0", "6d6f636b-0000-4000-8000-000000000001",
             TN_PLUGIN_CLOSABLE)
