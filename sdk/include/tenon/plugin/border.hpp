// From the ABI's functions to the classes: handles become references, arguments are checked, exceptions become
// statuses.
#ifndef TENON_PLUGIN_BORDER_HPP
#define TENON_PLUGIN_BORDER_HPP

#include "tenon/plugin/host_buffer.hpp"
#include "tenon/plugin/stream.hpp"

namespace tenon::plugin {
namespace detail {

inline Instance *from(tn_instance handle) noexcept {
    return reinterpret_cast<Instance *>(handle);
}
inline Adapter *from(tn_adapter handle) noexcept {
    return reinterpret_cast<Adapter *>(handle);
}
inline Device *from(tn_device handle) noexcept {
    return reinterpret_cast<Device *>(handle);
}
inline BufferType *from(tn_buffer_type handle) noexcept {
    return reinterpret_cast<BufferType *>(handle);
}
inline Buffer *from(tn_buffer handle) noexcept {
    return reinterpret_cast<Buffer *>(handle);
}
inline Stream *from(tn_stream handle) noexcept {
    return reinterpret_cast<Stream *>(handle);
}
inline Event *from(tn_event handle) noexcept {
    return reinterpret_cast<Event *>(handle);
}
inline Plan *from(tn_plan handle) noexcept {
    return reinterpret_cast<Plan *>(handle);
}

inline tn_buffer_type to_handle(BufferType *type) noexcept {
    return reinterpret_cast<tn_buffer_type>(type);
}

/// body(object), guarded. A null handle, which the host promises never to pass, has no sink to tell.
template <class Handle, class Body>
tn_status call(Handle handle, Body &&body) noexcept {
    auto *object = from(handle);
    if (object == nullptr) return TN_INVALID_ARGUMENT;
    return guard(object->host(), [&] { body(*object); });
}

/// D25, D26: the tensor lies in the buffer, the range in the tensor, and no block is cut.
inline ValueView read_range(const Buffer &buffer, const tn_value *tensor, uint64_t offset, uint64_t bytes) {
    buffer.type().check_alive();
    const ValueView v = read_tensor(tensor);
    const uint64_t room = v.is_contiguous() ? buffer.type().tensor_bytes(v) : v.extent();
    if (v.offset > buffer.bytes() || room > buffer.bytes() - v.offset) {
        fail(TN_INVALID_ARGUMENT, "tensor '", v.name, "' of ", room, " bytes at ", v.offset,
             " ends beyond its buffer of ", buffer.bytes());
    }
    const uint64_t size = v.bytes();
    if (offset > size || bytes > size - offset) {
        fail(TN_INVALID_ARGUMENT, "range of ", bytes, " bytes at ", offset, " ends beyond tensor '", v.name, "' of ",
             size);
    }
    if (v.info->is_block() && (offset % v.info->block_bytes != 0 || bytes % v.info->block_bytes != 0)) {
        fail(TN_INVALID_ARGUMENT, "range of ", bytes, " bytes at ", offset, " cuts a block of ", v.info->name);
    }
    return v;
}

inline ValueView read_whole(const Buffer &buffer, const tn_value *tensor) {
    return read_range(buffer, tensor, 0, 0);
}

/// Rows of row_bytes: the range that the last of them ends, or a failure.
inline ValueView read_rows(const Buffer &buffer, const tn_value *tensor, uint64_t offset, uint64_t step,
                           uint64_t row_bytes, uint64_t rows) {
    if (rows == 0 || row_bytes == 0) return read_range(buffer, tensor, offset, 0);
    const uint64_t reach = add_checked(mul_checked(rows - 1, step, "rows"), row_bytes, "rows");
    const ValueView v = read_range(buffer, tensor, offset, reach);
    for (uint64_t cut : {step, row_bytes}) {
        if (v.info->is_block() && cut % v.info->block_bytes != 0)
            fail(TN_INVALID_ARGUMENT, "rows cut blocks of ", v.info->name);
    }
    return v;
}

inline void check_usage(uint32_t usage) {
    if (usage > TN_USAGE_COMPUTE) fail(TN_INVALID_ARGUMENT, "usage ", usage, " isn't listed");
}

/// Why a node gets no answer from the author's code.
inline Support ask(const Device &device, const GraphView &graph, const NodeView &node) {
    if (node.later_params) return Support::no("it has parameters of a later version");
    for (const auto &list : {node.inputs, node.outputs}) {
        for (uint32_t v : list) {
            if (v != TN_NONE && graph.value(v).info == nullptr)
                return Support::no("type ", graph.value(v).type, " is unknown");
        }
    }
    return device.support(graph, node);
}

/// Copies between buffers: both alive, tensors equal and inside; false: the host stages.
inline bool read_copy(const Buffer &dst, const tn_value *dst_tensor, const Buffer &src, const tn_value *src_tensor,
                      ValueView &to, ValueView &from) {
    to = read_whole(dst, dst_tensor);
    from = read_whole(src, src_tensor);
    if (to.type != from.type || !to.same_shape(from))
        fail(TN_INVALID_ARGUMENT, "copy between tensors of different type or shape");
    return dst.can_copy_from(to, src, from);
}

}  // namespace detail

/// Life and counting of what crosses the border; a friend of the classes.
struct Border {
    /// Gives an object to the host, which owns and frees it.
    template <class Handle, class T>
    static void hand_out(Instance &instance, std::unique_ptr<T> object, Handle *out) {
        if (object == nullptr) fail(TN_INTERNAL, "nothing was made");
        instance.live_.fetch_add(1, std::memory_order_relaxed);
        *out = reinterpret_cast<Handle>(object.release());
    }
    /// The count falls last: until then unload answers TN_BUSY.
    template <class T>
    static void take_back(Instance &instance, T *object) noexcept {
        delete object;
        instance.live_.fetch_sub(1, std::memory_order_release);
    }
    static void finish(Plan &plan) { plan.finish(); }
    static void place(Plan &plan, const tn_placement &placement) { plan.place(placement); }
    static void bind(Plan &plan, const tn_bind &bind) { plan.bind(bind); }
    static const BoundSet &bound_set(const Plan &plan, uint32_t number) { return plan.bound_set(number); }
    static bool update(Plan &plan, std::shared_ptr<const GraphView> graph) {
        if (!plan.update(*graph)) return false;
        plan.graph_ = std::move(graph);
        return true;
    }
    static bool busy(const Instance &instance) noexcept { return instance.live_.load(std::memory_order_acquire) != 0; }
    static void attach(Instance &instance, const PluginInfo &info, const tn_host &host, const tn_registrar &registrar) {
        instance.host_ = host;
        instance.info_ = &info;
        instance.registrar_ = std::make_unique<Registrar>(registrar);
    }
    /// What was registered goes before the author's own members do.
    static void clear(Instance &instance) { instance.registrar_->clear(); }
};

}  // namespace tenon::plugin
#endif
