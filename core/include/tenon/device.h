// What an application and the scheduler see of plugins: adapters, opened devices, their memory, streams, events and
// plans. Thin owners over the tables of abi.h: each object keeps alive what it was made from, down to the library.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/abi.h"
#include "tenon/status.h"

namespace tenon {

class Buffer;
class Device;
class LiveGuard;  // core/registry/live_count.h
class Plugin;     // a loaded plugin: library, instance, tables made whole with stubs (core/registry/plugin.h)

enum class DeviceKind : uint32_t {
    cpu = TN_KIND_CPU,
    gpu = TN_KIND_GPU,
    integrated = TN_KIND_INTEGRATED,
    accelerator = TN_KIND_ACCELERATOR
};
enum class Usage : uint32_t { any = TN_USAGE_ANY, weights = TN_USAGE_WEIGHTS, compute = TN_USAGE_COMPUTE };

/// "cpu", "gpu", "integrated" or "accelerator".
std::string_view kind_name(DeviceKind kind) noexcept;

/// A device that could be opened. A value.
struct AdapterInfo {
    std::string name;         // "vulkan:0"
    std::string description;  // "AMD Radeon ..."
    std::string bus_id;       // "0000:01:00.0", or empty
    std::string plugin;       // name of the plugin that brought it
    DeviceKind kind = DeviceKind::cpu;
    bool software = false;  // a GPU API on the CPU: never chosen by default
    bool asynchronous = false;
    uint64_t total_bytes = 0, free_bytes = 0;  // 0 and 0 where the plugin could not tell
};

/// A kind of memory. Owned by the plugin or device that listed it; a small handle, copyable; any thread.
class BufferType {
public:
    BufferType(std::shared_ptr<Plugin> plugin, std::shared_ptr<Device> device, tn_buffer_type handle,
               const tn_buffer_type_info &info);

    /// The ABI's description; its name points into this object's own copy. Valid as long as the object.
    tn_buffer_type_info info() const;
    const std::string &name() const { return *name_; }
    bool is_host() const { return info_.flags & TN_TYPE_IS_HOST; }
    bool is_packed() const { return info_.flags & TN_TYPE_PACKED; }
    bool can_import() const { return info_.flags & TN_TYPE_CAN_IMPORT; }
    uint64_t alignment() const { return info_.alignment; }
    uint64_t max_bytes() const { return info_.max_bytes; }  // of one buffer; 0: no limit
    tn_buffer_type handle() const { return handle_; }
    const std::shared_ptr<Plugin> &plugin() const { return plugin_; }
    bool operator==(const BufferType &other) const { return handle_ == other.handle_ && plugin_ == other.plugin_; }

    /// A new buffer; contents undefined. out_of_memory names the type and the bytes.
    Result<std::shared_ptr<Buffer>> alloc(uint64_t bytes, Usage usage) const;
    /// A buffer over memory of the caller's, valid until the buffer is gone. unsupported: alignment or kind; copy
    /// instead.
    Result<std::shared_ptr<Buffer>> import_host(void *data, uint64_t bytes, bool writable) const;
    /// Bytes that a tensor of this description takes here (offset and flags are ignored).
    Result<uint64_t> tensor_bytes(const tn_value &tensor) const;

private:
    friend class Buffer;
    Status note(Status status) const;  // Device::note, where there is a device
    Result<std::shared_ptr<Buffer>> adopt(LiveGuard &guard, std::shared_ptr<Buffer> buffer, tn_buffer handle) const;

    std::shared_ptr<Plugin> plugin_;
    std::shared_ptr<Device> device_;  // null: a type that needs no opened device
    tn_buffer_type handle_;
    tn_buffer_type_info info_;
    std::shared_ptr<const std::string> name_;
};

/// Memory of one buffer type. Moves bytes at once and doesn't wait for streams. Thread rules as in abi.h.
class Buffer {
public:
    /// Owns the handle; null: nothing.
    Buffer(BufferType type, tn_buffer handle, void *base, uint64_t bytes);
    ~Buffer();
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;

    const BufferType &type() const { return type_; }
    tn_buffer handle() const { return handle_; }
    void *base() const { return base_; }  // the CPU's address, or null
    uint64_t bytes() const { return bytes_; }

    /// The plugin's word for a tensor (a base, never a view), to be called before its first use; 0 where it keeps none.
    Result<uint64_t> init_tensor(const tn_value &tensor);
    /// `offset` and `bytes` count in the tensor's canonical bytes. Errors name buffer type and tensor.
    Status set(const tn_value &tensor, uint64_t offset, const void *src, uint64_t bytes);
    Status get(const tn_value &tensor, uint64_t offset, void *dst, uint64_t bytes);
    Status fill(const tn_value &tensor, uint64_t offset, uint64_t bytes, uint8_t byte);
    Status clear(uint8_t byte);
    Status set_usage(Usage usage);  // a hint

private:
    friend class BufferType;
    BufferType type_;
    tn_buffer handle_;
    void *base_;
    uint64_t bytes_;
};

/// Work in order on one device. One thread at a time.
class Stream {
public:
    static Result<std::unique_ptr<Stream>> create(std::shared_ptr<Device> device);
    ~Stream();
    Stream(const Stream &) = delete;
    Stream &operator=(const Stream &) = delete;

    const std::shared_ptr<Device> &device() const { return device_; }
    tn_stream handle() const { return handle_; }
    /// Queued; memory and buffers stay valid and unchanged until the stream has passed.
    Status set(Buffer &buffer, const tn_value &tensor, uint64_t offset, const void *src, uint64_t bytes);
    Status get(Buffer &buffer, const tn_value &tensor, uint64_t offset, void *dst, uint64_t bytes);
    /// Both buffers of this device's plugin. unsupported / unimplemented: stage through the host.
    Status copy(Buffer &dst, const tn_value &dst_tensor, Buffer &src, const tn_value &src_tensor);
    /// Waits for all that is queued; reports the stream's failure once and clears it.
    Status synchronize(uint64_t timeout_ns = TN_FOREVER);

private:
    Stream(std::shared_ptr<Device> device, tn_stream handle);
    std::shared_ptr<Device> device_;
    tn_stream handle_;
};

/// A point in a stream of one device (see abi.h for rounds and failures).
class Event {
public:
    static Result<std::unique_ptr<Event>> create(std::shared_ptr<Device> device);
    ~Event();
    Event(const Event &) = delete;
    Event &operator=(const Event &) = delete;

    Status record(Stream &stream);
    Status wait(Stream &stream);
    Status synchronize(uint64_t timeout_ns = TN_FOREVER);

private:
    Event(std::shared_ptr<Device> device, tn_event handle);
    std::shared_ptr<Device> device_;
    tn_event handle_;
};

/// A segment made ready on one device. Calls as in abi.h; the lists are read whole.
class Plan {
public:
    static Result<std::unique_ptr<Plan>> prepare(std::shared_ptr<Device> device, const tn_graph &graph);
    ~Plan();
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;

    /// Scratch bytes of each group, in running order.
    const std::vector<uint64_t> &group_scratch() const { return group_scratch_; }
    /// The group of each node.
    const std::vector<uint32_t> &node_groups() const { return node_groups_; }
    const std::vector<uint32_t> &unstored() const { return unstored_; }
    /// Offers (output, input).
    const std::vector<std::pair<uint32_t, uint32_t>> &in_place() const { return in_place_; }

    Status place(const tn_placement &placement);
    Status bind(const tn_bind &bind);
    Status run(Stream &stream, uint32_t set, uint64_t cancel_token);
    Status update(const tn_graph &graph);

private:
    Plan(std::shared_ptr<Device> device, tn_plan handle);
    Status read_answers(const tn_graph &graph);  // checks the plugin's answers against D34-D37

    std::shared_ptr<Device> device_;
    tn_plan handle_;
    std::vector<uint64_t> group_scratch_;
    std::vector<uint32_t> node_groups_, unstored_;
    std::vector<std::pair<uint32_t, uint32_t>> in_place_;
};

/// An opened adapter. Shared: whatever is made from it keeps it alive.
class Device : public std::enable_shared_from_this<Device> {
public:
    ~Device();
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    const std::string &name() const { return info_.name; }
    const AdapterInfo &info() const { return info_; }
    const std::shared_ptr<Plugin> &plugin() const { return plugin_; }
    tn_device handle() const { return handle_; }
    /// Rises with every change that schedules may depend on (an option was set, the plugin told of one, withdrawal).
    uint64_t generation() const;
    /// The adapter was withdrawn or the plugin answered device_lost: new work is refused with device_lost.
    bool lost() const { return lost_.load(std::memory_order_relaxed); }

    /// Options as text; a set raises the generation. not_found, unsupported (read only), invalid_argument.
    Status set_option(const std::string &key, const std::string &value);
    Result<std::string> get_option(const std::string &key) const;

    /// In order of preference, at least one; the first is the default. Read once, when the device was opened.
    std::vector<BufferType> buffer_types();
    BufferType default_buffer_type();

    /// A word of TN_SUPPORT_ bits for each node of the graph.
    Result<std::vector<uint32_t>> supports(const tn_graph &graph) const;
    /// Why a node isn't supported.
    Result<std::string> support_reason(const tn_graph &graph, uint64_t node) const;
    /// Whether kernels can use such memory in place, also of another plugin.
    Result<bool> supports(const BufferType &type) const;

    /// Passes a plugin's answer on; device_lost is remembered. And what to answer instead of starting new work on a
    /// lost device. For the classes of this header.
    Status note(Status status) const;
    Status usable() const;

private:
    friend class Registry;
    friend class Plugin;
    Device(std::shared_ptr<Plugin> plugin, tn_device handle, AdapterInfo info);
    Status read_buffer_types();

    std::shared_ptr<Plugin> plugin_;
    tn_device handle_;
    AdapterInfo info_;
    mutable std::atomic<uint64_t> generation_{1};
    mutable std::atomic<bool> lost_{false};
    struct TypeRow {
        tn_buffer_type handle;
        tn_buffer_type_info info;
        std::string name;
    };
    std::vector<TypeRow> types_;
};

}  // namespace tenon
