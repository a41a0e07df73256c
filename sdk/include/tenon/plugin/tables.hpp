// The tables: one function of the ABI each, all alike: read the arguments, call the class, write the answer last (D01).
#ifndef TENON_PLUGIN_TABLES_HPP
#define TENON_PLUGIN_TABLES_HPP

#include "tenon/plugin/border.hpp"

namespace tenon::plugin::detail {

inline constexpr tn_adapter_api kAdapterApi = {
    TN_SIZE_ADAPTER_API, nullptr,
    /* memory */
    [](tn_adapter h, uint64_t *out_total, uint64_t *out_free) noexcept -> tn_status {
        return call(h, [&](Adapter &a) {
            need(out_total, "out_total"), need(out_free, "out_free");
            const Adapter::Memory memory = a.memory();
            *out_total = memory.total, *out_free = memory.free;
        });
    },
    /* open */
    [](tn_adapter h, const tn_open *params, tn_device *out) noexcept -> tn_status {
        return call(h, [&](Adapter &a) {
            need(out, "out");
            const tn_open own = read_struct(params);
            if (a.withdrawn()) fail(TN_DEVICE_LOST, "the adapter was withdrawn");
            Options options(SpanView<tn_option>(own.options, own.option_count, own.option_stride));
            std::unique_ptr<Device> device = a.open(options);
            options.check_all_used();
            if (device != nullptr && device->buffer_types().empty()) fail(TN_INTERNAL, "the device has no buffer type");
            Border::hand_out(a.instance(), std::move(device), out);
        });
    }};

inline constexpr tn_device_api kDeviceApi = {
    TN_SIZE_DEVICE_API, nullptr,
    /* close */
    [](tn_device h) noexcept {
        if (Device *d = from(h)) Border::take_back(d->instance(), d);
    },
    /* option_set */
    [](tn_device h, const char *key, const char *value) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            d.check_alive();
            d.set_option(need(key, "key"), need(value, "value"));
        });
    },
    /* option_get */
    [](tn_device h, const char *key, uint64_t *io_bytes, char *out) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            d.check_alive();
            const auto text = d.option(need(key, "key"));
            if (!text) fail(TN_NOT_FOUND, "no option '", key, "'");
            give_text(*text, io_bytes, out);
        });
    },
    /* buffer_types */
    [](tn_device h, uint64_t *io_count, tn_buffer_type *out) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            std::vector<tn_buffer_type> own;
            for (BufferType *type : d.buffer_types()) own.push_back(to_handle(type));
            give_items<tn_buffer_type>(own, io_count, out);
        });
    },
    /* supports_op */
    [](tn_device h, const tn_graph *graph, uint32_t *out) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            d.check_alive();
            const auto own = GraphReader::read(graph);
            std::vector<uint32_t> bits;
            for (const NodeView &node : own->nodes()) bits.push_back(ask(d, *own, node).bits);
            if (!bits.empty()) std::copy(bits.begin(), bits.end(), need(out, "out"));
        });
    },
    /* support_reason */
    [](tn_device h, const tn_graph *graph, uint64_t node, uint64_t *io_bytes, char *out) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            d.check_alive();
            const auto own = GraphReader::read(graph);
            if (node >= own->nodes().size()) fail(TN_INVALID_ARGUMENT, "node ", node, " is out of range");
            const Support support = ask(d, *own, own->nodes()[node]);
            if (support) fail(TN_INVALID_STATE, "node ", node, " is supported");
            give_text(support.reason, io_bytes, out);
        });
    },
    /* supports_buffer_type */
    [](tn_device h, const tn_buffer_type_info *type, uint32_t *out) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            d.check_alive();
            need(out, "out");
            *out = d.supports_buffer_type(read_buffer_type(read_struct(type))) ? 1 : 0;
        });
    }};

inline constexpr tn_buffer_type_api kBufferTypeApi = {
    TN_SIZE_BUFFER_TYPE_API, nullptr,
    /* info */
    [](tn_buffer_type h, tn_buffer_type_info *out) noexcept -> tn_status {
        return call(h, [&](BufferType &t) { write_struct(out, describe(t)); });
    },
    /* alloc */
    [](tn_buffer_type h, uint64_t bytes, uint32_t usage, tn_buffer *out) noexcept -> tn_status {
        return call(h, [&](BufferType &t) {
            t.check_alive();
            need(out, "out"), check_usage(usage);
            const uint64_t most = t.view().max_bytes;
            if (most != 0 && bytes > most)
                fail(TN_INVALID_ARGUMENT, "'", t.view().name, "': ", bytes, " bytes are over ", most);
            Border::hand_out(t.instance(), t.alloc(bytes, usage), out);
        });
    },
    /* tensor_bytes */
    [](tn_buffer_type h, const tn_value *tensor, uint64_t *out) noexcept -> tn_status {
        return call(h, [&](BufferType &t) {
            need(out, "out");
            *out = t.tensor_bytes(read_tensor(tensor));
        });
    },
    /* import_host */
    [](tn_buffer_type h, void *memory, uint64_t bytes, uint32_t writable, tn_buffer *out) noexcept -> tn_status {
        return call(h, [&](BufferType &t) {
            t.check_alive();
            need(out, "out"), need(memory, "the memory");
            if (writable > 1) fail(TN_INVALID_ARGUMENT, "writable is neither 0 nor 1");
            if ((t.view().flags & TN_TYPE_CAN_IMPORT) == 0) fail(TN_UNSUPPORTED, "'", t.view().name, "' can't import");
            Border::hand_out(t.instance(), t.import_host(memory, bytes, writable == 1), out);
        });
    }};

inline constexpr tn_buffer_api kBufferApi = {
    TN_SIZE_BUFFER_API, nullptr,
    /* destroy */
    [](tn_buffer h) noexcept {
        if (Buffer *b = from(h)) Border::take_back(b->type().instance(), b);
    },
    /* info */
    [](tn_buffer h, tn_buffer_info *out) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            auto own = make_struct<tn_buffer_info>();
            own.base = (b.type().view().flags & TN_TYPE_IS_HOST) != 0 ? b.base() : nullptr;
            own.bytes = b.bytes();
            write_struct(out, own);
        });
    },
    /* init_tensor */
    [](tn_buffer h, const tn_value *tensor, uint64_t *out_cookie) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            need(out_cookie, "out_cookie");
            *out_cookie = b.init_tensor(read_whole(b, tensor));
        });
    },
    /* set */
    [](tn_buffer h, const tn_value *tensor, uint64_t offset, const void *src, uint64_t bytes) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            const ValueView v = read_range(b, tensor, offset, bytes);
            if (bytes != 0) b.set(v, offset, need(src, "src"), bytes);
        });
    },
    /* get */
    [](tn_buffer h, const tn_value *tensor, uint64_t offset, void *dst, uint64_t bytes) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            const ValueView v = read_range(b, tensor, offset, bytes);
            if (bytes != 0) b.get(v, offset, need(dst, "dst"), bytes);
        });
    },
    /* fill */
    [](tn_buffer h, const tn_value *tensor, uint64_t offset, uint64_t bytes, uint8_t byte) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            const ValueView v = read_range(b, tensor, offset, bytes);
            if (bytes != 0) b.fill(v, offset, bytes, byte);
        });
    },
    /* copy */
    [](tn_buffer h, const tn_value *dst_tensor, tn_buffer src, const tn_value *src_tensor) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            const Buffer &source = *need(from(src), "the source buffer");
            ValueView to, of;
            if (!read_copy(b, dst_tensor, source, src_tensor, to, of))
                fail(TN_UNSUPPORTED, "no direct copy between these buffers");
            b.copy_from(to, source, of);
        });
    },
    /* clear */
    [](tn_buffer h, uint8_t byte) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            b.type().check_alive();
            b.clear(byte);
        });
    },
    /* reset */
    [](tn_buffer h) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            b.type().check_alive();
            b.reset();
        });
    },
    /* set_usage */
    [](tn_buffer h, uint32_t usage) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            check_usage(usage);
            b.set_usage(usage);
        });
    },
    /* set_2d */
    [](tn_buffer h, const tn_value *tensor, uint64_t offset, uint64_t step, const void *src, uint64_t src_step,
       uint64_t row_bytes, uint64_t rows) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            const ValueView v = read_rows(b, tensor, offset, step, row_bytes, rows);
            const auto *at = static_cast<const std::byte *>(src);
            if (row_bytes == 0) return;
            for (uint64_t i = 0; i < rows; ++i) b.set(v, offset + i * step, need(at, "src") + i * src_step, row_bytes);
        });
    },
    /* get_2d */
    [](tn_buffer h, const tn_value *tensor, uint64_t offset, uint64_t step, void *dst, uint64_t dst_step,
       uint64_t row_bytes, uint64_t rows) noexcept -> tn_status {
        return call(h, [&](Buffer &b) {
            const ValueView v = read_rows(b, tensor, offset, step, row_bytes, rows);
            auto *at = static_cast<std::byte *>(dst);
            if (row_bytes == 0) return;
            for (uint64_t i = 0; i < rows; ++i) b.get(v, offset + i * step, need(at, "dst") + i * dst_step, row_bytes);
        });
    }};

}  // namespace tenon::plugin::detail

#include "tenon/plugin/tables_run.hpp"
#endif
