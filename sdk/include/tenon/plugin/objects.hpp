// The classes that a plugin author derives from. tables.hpp turns them into the ABI's tables.
//
// Ownership: Instance owns its adapters, buffer types and vendor ops; Device owns its buffer types; the host owns
// devices, buffers, streams, events and plans, and frees children before parents. Every object knows its parent from
// construction on.
#ifndef TENON_PLUGIN_OBJECTS_HPP
#define TENON_PLUGIN_OBJECTS_HPP

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "tenon/plugin/host.hpp"

namespace tenon::plugin {

class Adapter;
class Buffer;
class BufferType;
class Device;
class Event;
class Instance;
class Plan;
class Registrar;
class Stream;
class VendorOp;
struct BoundSet;

/// What TENON_PLUGIN states.
struct PluginInfo {
    const char *name;
    std::array<uint8_t, 16> guid;
};

/// One load of the plugin by one host: all state hangs on it (D09). The constructor runs before the host is known: use
/// load.
class Instance {
public:
    Instance();
    Instance(const Instance &) = delete;
    Instance &operator=(const Instance &) = delete;
    virtual ~Instance();

    /// Adds every adapter that is there now (D42), fast: no context, no device memory (D43). Having none is fine; log
    /// why. Whatever it throws refuses the load.
    virtual void load(Registrar &registrar) = 0;
    /// A function table by name, constant until unload; 0 if there is none. [any]
    virtual const void *extension(std::string_view) { return nullptr; }

    HostRef host() const noexcept { return HostRef(&host_); }
    const PluginInfo &plugin() const noexcept { return *info_; }
    /// For adapters that come and go after load. [any]
    Registrar &registrar() noexcept { return *registrar_; }

private:
    friend struct Border;
    friend class Registrar;
    tn_host host_{};
    const PluginInfo *info_ = nullptr;
    std::unique_ptr<Registrar> registrar_;
    std::atomic<int64_t> live_{0};  // objects that the host owns (D44)
};

/// Where an instance registers what it brings. [any]; what is added lives until unload, also after a withdrawal (D14).
class Registrar {
public:
    explicit Registrar(const tn_registrar &table);
    Registrar(const Registrar &) = delete;
    Registrar &operator=(const Registrar &) = delete;
    ~Registrar();

    Adapter &add(std::unique_ptr<Adapter> adapter);
    /// Its devices answer TN_DEVICE_LOST from here on, nobody waits for them any longer.
    void withdraw(Adapter &adapter);
    /// For memory that needs no opened device. Devices may list it too (Device::list_buffer_type).
    BufferType &add(std::unique_ptr<BufferType> type);
    void withdraw(BufferType &type);
    /// The op's id is op.id() afterwards.
    VendorOp &add(std::unique_ptr<VendorOp> op);

private:
    friend struct Border;
    template <class T>
    T &keep(std::vector<std::unique_ptr<T>> &list, std::unique_ptr<T> object);
    template <class T>
    void drop(std::vector<std::unique_ptr<T>> &list, const T &object);
    void clear();

    tn_registrar t_;
    std::mutex mutex_;  // of the lists; never held across a call to the host (D10)
    std::vector<std::unique_ptr<Adapter>> adapters_;
    std::vector<std::unique_ptr<BufferType>> types_;
    std::vector<std::unique_ptr<VendorOp>> ops_;
};

/// A device that could be opened. Its functions: [any].
class Adapter {
public:
    struct Memory {
        uint64_t total, free;  // bytes
    };

    Adapter(Instance &instance, AdapterInfo info) : instance_(instance), info_(std::move(info)) {}
    Adapter(const Adapter &) = delete;
    Adapter &operator=(const Adapter &) = delete;
    virtual ~Adapter() = default;

    /// Without opening a device or creating a context (D15).
    virtual Memory memory() const = 0;
    /// Asks options for each key that it knows; other keys make the open fail afterwards (D16).
    virtual std::unique_ptr<Device> open(Options &options) = 0;

    Instance &instance() const noexcept { return instance_; }
    HostRef host() const noexcept { return instance_.host(); }
    const AdapterInfo &info() const noexcept { return info_; }
    bool withdrawn() const noexcept { return withdrawn_.load(std::memory_order_acquire); }

private:
    friend class Device;
    friend class Registrar;
    void lose_devices();

    Instance &instance_;
    const AdapterInfo info_;
    std::atomic<bool> withdrawn_{false};
    std::mutex mutex_;
    std::vector<Device *> devices_;  // opened
};

/// How the ready-made streams of a device behave.
struct StreamOptions {
    uint64_t spin_ns = 20000;  // busy waiting for work before the thread sleeps, and for results before the caller does
    uint32_t capacity = 128;   // queued items before queuing waits for room; a power of two
};

/// An opened adapter.
class Device {
public:
    explicit Device(Adapter &adapter);
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    /// No thread of the device runs plugin code afterwards (D17).
    virtual ~Device();

    /// Whether this device runs a node, and if not, why: one function for supports_op and support_reason, and prepare
    /// accepts what it says yes to (D20). Pure: depends on node, operands, their buffer types and the device's options
    /// alone (D19). Types unknown to dtypes.def and parameters of later versions never get here. [any]
    virtual Support support(const GraphView &graph, const NodeView &node) const = 0;
    /// Whether kernels can use such memory in place; also asked for foreign types (D12). [any]
    virtual bool supports_buffer_type(const BufferTypeView &type) const = 0;
    /// Every node has been found supported. The plan may keep graph. [any]
    virtual std::unique_ptr<Plan> prepare(std::shared_ptr<const GraphView> graph) = 0;

    /// Throws TN_NOT_FOUND, TN_INVALID_ARGUMENT, TN_UNSUPPORTED (read only). [object]; plans may be running.
    virtual void set_option(std::string_view key, std::string_view value);
    virtual std::optional<std::string> option(std::string_view key) const;

    virtual StreamOptions stream_options() const { return {}; }
    /// The ready-made ones (stream.hpp) unless overridden; both together, since a stream knows its own events only.
    /// [any]
    virtual std::unique_ptr<Stream> make_stream();
    virtual std::unique_ptr<Event> make_event();

    /// For good: every call answers TN_DEVICE_LOST, nobody waits any longer (D29). [any], also from a run.
    void lose(std::string_view why) noexcept;
    bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
    /// Throws TN_DEVICE_LOST if it is lost.
    void check_alive() const;

    Adapter &adapter() const noexcept { return adapter_; }
    Instance &instance() const noexcept { return adapter_.instance(); }
    HostRef host() const noexcept { return adapter_.host(); }
    std::span<BufferType *const> buffer_types() const noexcept { return types_; }
    /// The first: where values without a buffer type lie, and scratch.
    BufferType &default_buffer_type() const { return *types_.at(0); }
    /// The handle that host.changed takes.
    const void *handle() const noexcept { return this; }

protected:
    /// In the constructor, in order of preference.
    template <class T>
    T &add_buffer_type(std::unique_ptr<T> type) {
        T &added = *type;
        types_.push_back(type.get());
        owned_types_.push_back(std::move(type));
        return added;
    }
    void list_buffer_type(BufferType &type) { types_.push_back(&type); }

private:
    friend class Waitable;
    Adapter &adapter_;
    std::vector<BufferType *> types_;
    std::vector<std::unique_ptr<BufferType>> owned_types_;
    std::atomic<bool> lost_{false};
    mutable std::mutex mutex_;
    detail::Failure why_lost_;
    std::vector<class Waitable *> waitables_;
};

/// Whatever somebody may wait on, so that a device that is lost can wake them.
class Waitable {
public:
    explicit Waitable(Device &device) : device_(device) {}
    Waitable(const Waitable &) = delete;
    Waitable &operator=(const Waitable &) = delete;
    virtual ~Waitable() = default;
    Device &device() const noexcept { return device_; }
    HostRef host() const noexcept { return device_.host(); }

protected:
    friend class Device;
    /// Wakes every waiter. Called under the device's lock: calls nobody else.
    virtual void wake() noexcept = 0;
    /// At the end of the most derived constructor and the begin of its destructor: between them wake may be called.
    void enlist();
    void forget() noexcept;

private:
    Device &device_;
};

/// A kind of memory, with its layout of weights. Of a device, or of the instance where no device is needed.
class BufferType {
public:
    /// view.owner is filled in.
    BufferType(Device &device, BufferTypeView view) : BufferType(device.instance(), &device, std::move(view)) {}
    BufferType(Instance &instance, BufferTypeView view) : BufferType(instance, nullptr, std::move(view)) {}
    BufferType(const BufferType &) = delete;
    BufferType &operator=(const BufferType &) = delete;
    virtual ~BufferType() = default;

    /// Throws TN_OUT_OF_MEMORY here rather than failing at first touch (D22). bytes may be 0. usage: TN_USAGE_. [any]
    virtual std::unique_ptr<Buffer> alloc(uint64_t bytes, uint32_t usage) = 0;
    /// Bytes that a contiguous tensor takes, at least its canonical ones; pure (D23). [any]
    virtual uint64_t tensor_bytes(const ValueView &tensor) const { return tensor.bytes(); }
    /// A buffer over the host's memory; never written if !writable (D24). Called only with TN_TYPE_CAN_IMPORT. [any]
    virtual std::unique_ptr<Buffer> import_host(void *memory, uint64_t bytes, bool writable);

    const BufferTypeView &view() const noexcept { return view_; }
    Instance &instance() const noexcept { return instance_; }
    HostRef host() const noexcept { return instance_.host(); }
    Device *device() const noexcept { return device_; }  // 0: the instance's
    /// Throws TN_DEVICE_LOST.
    void check_alive() const {
        if (device_ != nullptr) device_->check_alive();
    }

private:
    BufferType(Instance &instance, Device *device, BufferTypeView view)
        : instance_(instance), device_(device), view_(std::move(view)) {
        view_.owner = instance.plugin().guid;
    }
    Instance &instance_;
    Device *device_;
    BufferTypeView view_;
};

/// Memory. Calls are done when they return. Ranges were checked against tensor and buffer (D26), blocks are whole,
/// offsets count in the tensor's canonical bytes (D25); tensor.offset counts from the buffer's begin. Calls: [any] as
/// long as ranges don't overlap; clear, reset, set_usage, init_tensor: [object].
class Buffer {
public:
    Buffer(BufferType &type, uint64_t bytes) : type_(type), bytes_(bytes) {}
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    virtual ~Buffer() = default;

    /// The CPU's address where the type has TN_TYPE_IS_HOST, else 0. Fixed.
    virtual void *base() const noexcept = 0;
    /// What kernels add offsets to; an address of the device's own kind. Fixed.
    virtual void *device_address() const noexcept { return base(); }
    virtual void set(const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) = 0;
    virtual void get(const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) = 0;
    virtual void fill(const ValueView &tensor, uint64_t offset, uint64_t bytes, uint8_t byte) = 0;
    virtual void clear(uint8_t byte) = 0;
    /// Whole tensors of equal type and shape from another buffer of this plugin. Pure; the host stages where it says
    /// no.
    virtual bool can_copy_from(const ValueView &, const Buffer &, const ValueView &) const { return false; }
    virtual void copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor);
    virtual uint64_t init_tensor(const ValueView &) { return 0; }
    virtual void reset() {}
    virtual void set_usage(uint32_t) {}

    BufferType &type() const noexcept { return type_; }
    uint64_t bytes() const noexcept { return bytes_; }
    HostRef host() const noexcept { return type_.host(); }

private:
    BufferType &type_;
    const uint64_t bytes_;
};

/// Work in order. Calls: [object]. Arguments were checked. The ready-made one is ThreadStream.
class Stream : public Waitable {
public:
    using Waitable::Waitable;
    virtual void set(Buffer &buffer, const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) = 0;
    virtual void get(Buffer &buffer, const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) = 0;
    virtual void copy(Buffer &dst, const ValueView &dst_tensor, Buffer &src, const ValueView &src_tensor) = 0;
    virtual void run(Plan &plan, const BoundSet &set, uint64_t cancel_token) = 0;
    /// Throws the poison once, or TN_TIMEOUT.
    virtual void synchronize(uint64_t timeout_ns) = 0;
};

/// A point in a stream. The stream is of the same device (D31). The ready-made one is RoundEvent.
class Event : public Waitable {
public:
    using Waitable::Waitable;
    virtual void record(Stream &stream) = 0;
    virtual void wait(Stream &stream) = 0;
    /// Throws the round's failure without clearing it, or TN_TIMEOUT.
    virtual void synchronize(uint64_t timeout_ns) = 0;
};

}  // namespace tenon::plugin
#endif
