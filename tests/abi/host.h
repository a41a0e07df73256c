// A small host for the ABI's tests: opens a plugin with dlopen, offers the two tables, calls the plugin's. No part of
// core.
#ifndef TENON_TESTS_ABI_HOST_H
#define TENON_TESTS_ABI_HOST_H

#include <dlfcn.h>

#include <doctest/doctest.h>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tenon/abi.h"
#include "tenon/ops.h"

namespace abi_test {

/// A zeroed struct of the size that the header gives it.
template <class T>
T make(uint64_t size) {
    T t{};
    t.struct_size = size;
    return t;
}

/// The text that the plugin gave for the current call on this thread (D02).
inline std::string &last_error() {
    static thread_local std::string text;
    return text;
}

struct Host {
    std::atomic<int64_t> allocated{0};  // bytes
    std::atomic<uint64_t> cancelled_token{0};
    std::atomic<int64_t> calls_to_cancelled{0};
    std::map<std::string, std::string> options;
    std::map<std::string, tn_adapter> adapters;
    std::map<std::string, tn_op_info> ops;
    std::atomic<bool> refuse_adapters{false};

    tn_host table() {
        auto t = make<tn_host>(TN_SIZE_HOST);
        t.abi = {TN_ABI_MINOR_MIN, TN_ABI_MINOR_MAX};
        t.ctx = this;
        t.name = "abi test";
        t.error = [](void *, tn_status, const char *text) { last_error() = text; };
        t.log = [](void *, uint32_t, const char *) {};
        t.alloc = alloc;
        t.dealloc = [](void *ctx, void *memory, uint64_t bytes, uint64_t) {
            static_cast<Host *>(ctx)->allocated -= static_cast<int64_t>(bytes);
            std::free(memory);
        };
        t.option = option;
        t.cancelled = [](void *ctx, uint64_t token, uint32_t *out) -> tn_status {
            auto &self = *static_cast<Host *>(ctx);
            ++self.calls_to_cancelled;
            *out = self.cancelled_token == token ? 1 : 0;
            return TN_OK;
        };
        t.changed = [](void *, uint32_t, const void *) {};
        t.extension = [](void *, const char *, const void **) -> tn_status { return TN_NOT_FOUND; };
        t.trace_span = [](void *, const char *, const char *, uint64_t, uint64_t) {};
        return t;
    }

    tn_registrar registrar() {
        auto r = make<tn_registrar>(TN_SIZE_REGISTRAR);
        r.ctx = this;
        r.adapter_add = [](void *ctx, tn_adapter adapter, const tn_adapter_info *info) -> tn_status {
            auto &self = *static_cast<Host *>(ctx);
            if (self.refuse_adapters) return TN_BUSY;
            self.adapters[info->name] = adapter;
            return TN_OK;
        };
        r.adapter_withdraw = [](void *, tn_adapter) -> tn_status { return TN_OK; };
        r.buffer_type_add = [](void *, tn_buffer_type, const tn_buffer_type_info *) -> tn_status { return TN_OK; };
        r.buffer_type_withdraw = [](void *, tn_buffer_type) -> tn_status { return TN_OK; };
        r.op_add = [](void *ctx, const tn_op_info *info, uint32_t *out) -> tn_status {
            auto &self = *static_cast<Host *>(ctx);
            *out = TN_OP_VENDOR_FIRST + static_cast<uint32_t>(self.ops.size());
            self.ops[info->name] = *info;
            return TN_OK;
        };
        r.op_withdraw = [](void *, uint32_t) -> tn_status { return TN_OK; };
        return r;
    }

private:
    static tn_status alloc(void *ctx, uint64_t bytes, uint64_t alignment, void **out) {
        if (bytes > (uint64_t{1} << 32)) return TN_OUT_OF_MEMORY;
        *out = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
        if (*out == nullptr) return TN_OUT_OF_MEMORY;
        static_cast<Host *>(ctx)->allocated += static_cast<int64_t>(bytes);
        return TN_OK;
    }
    static tn_status option(void *ctx, const char *key, uint64_t *io_bytes, char *out) {
        const auto &options = static_cast<Host *>(ctx)->options;
        const auto found = options.find(key);
        if (found == options.end()) return TN_NOT_FOUND;
        const uint64_t room = *io_bytes, size = found->second.size() + 1;
        *io_bytes = size;
        if (out == nullptr) return TN_OK;
        if (room < size) return TN_TOO_SMALL;
        std::memcpy(out, found->second.c_str(), size);
        return TN_OK;
    }
};

/// A struct in a heap block of exactly its own bytes, so that the address sanitizer sees any read beyond (D05).
template <class T>
class Exact {
public:
    explicit Exact(const T &value) : bytes_(std::make_unique<uint64_t[]>((value.struct_size + 7) / 8)) {
        std::memcpy(bytes_.get(), &value, value.struct_size);
    }
    T *get() const { return reinterpret_cast<T *>(bytes_.get()); }

private:
    std::unique_ptr<uint64_t[]> bytes_;
};

/// The library, one for the process: sanitizers need it to stay.
class Library {
public:
    explicit Library(const char *path) : handle_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr) FAIL(dlerror());
    }
    tn_plugin_query_v1_fn query() const {
        return reinterpret_cast<tn_plugin_query_v1_fn>(dlsym(handle_, "tn_plugin_query_v1"));
    }
    void close() const { CHECK(dlclose(handle_) == 0); }

private:
    void *handle_;
};

/// One loaded instance with the plugin's tables at hand.
class Plugin {
public:
    Plugin(const Library &library, Host &host) : host_table_(host.table()), registrar_table_(host.registrar()) {
        REQUIRE(library.query()(host_table_.get(), &root) == TN_OK);
        REQUIRE(root->load(host_table_.get(), registrar_table_.get(), TN_ABI_MINOR_MAX, &instance) == TN_OK);
    }
    Plugin(const Plugin &) = delete;
    Plugin &operator=(const Plugin &) = delete;
    ~Plugin() {
        if (instance != nullptr) CHECK(root->unload(instance) == TN_OK);
    }
    tn_status unload() {
        const tn_status status = root->unload(instance);
        if (status == TN_OK) instance = nullptr;
        return status;
    }

    const tn_plugin *root = nullptr;
    tn_instance instance = nullptr;

private:
    Exact<tn_host> host_table_;
    Exact<tn_registrar> registrar_table_;
};

/// An opened device; closes itself.
class OpenDevice {
public:
    OpenDevice(const Plugin &plugin, tn_adapter adapter, std::vector<std::pair<std::string, std::string>> options = {})
        : p(*plugin.root), plugin_(plugin) {
        std::vector<tn_option> list;
        for (const auto &[key, value] : options) {
            list.push_back(make<tn_option>(TN_SIZE_OPTION));
            list.back().key = key.c_str(), list.back().value = value.c_str();
        }
        auto open = make<tn_open>(TN_SIZE_OPEN);
        open.options = list.data(), open.option_count = list.size(), open.option_stride = sizeof(tn_option);
        REQUIRE_MESSAGE(p.adapter->open(adapter, &open, &handle) == TN_OK, last_error());
        uint64_t count = 1;
        REQUIRE(p.device->buffer_types(handle, &count, &type) == TN_OK);
    }
    OpenDevice(const OpenDevice &) = delete;
    OpenDevice &operator=(const OpenDevice &) = delete;
    ~OpenDevice() { p.device->close(handle); }

    tn_buffer alloc(uint64_t bytes) const {
        tn_buffer buffer = nullptr;
        REQUIRE_MESSAGE(p.buffer_type->alloc(type, bytes, TN_USAGE_ANY, &buffer) == TN_OK, last_error());
        return buffer;
    }
    tn_stream stream() const {
        tn_stream made = nullptr;
        REQUIRE(p.stream->create(handle, &made) == TN_OK);
        return made;
    }
    tn_event event() const {
        tn_event made = nullptr;
        REQUIRE(p.event->create(handle, &made) == TN_OK);
        return made;
    }
    void set(const char *key, const std::string &value) const {
        REQUIRE_MESSAGE(p.device->option_set(handle, key, value.c_str()) == TN_OK, last_error());
    }

    const tn_plugin &p;
    tn_device handle = nullptr;
    tn_buffer_type type = nullptr;

private:
    [[maybe_unused]] const Plugin &plugin_;
};

/// A contiguous tensor of plain 4-byte elements unless strides are given.
inline tn_value tensor(std::vector<int64_t> shape, uint32_t type = TN_TYPE_ID_F32, uint64_t offset = 0,
                       uint32_t flags = 0) {
    auto v = make<tn_value>(TN_SIZE_VALUE);
    v.type = type, v.rank = static_cast<uint32_t>(shape.size()), v.offset = offset, v.flags = flags;
    v.buffer_type = v.view_of = TN_NONE;
    const bool q8 = type == TN_TYPE_ID_Q8_0;
    int64_t step = q8 ? 34 : type == TN_TYPE_ID_F16 || type == TN_TYPE_ID_BF16 ? 2 : type == TN_TYPE_ID_I64 ? 8 : 4;
    for (int64_t &size : v.shape) size = 1;
    for (uint32_t i = v.rank; i-- > 0;) {
        v.shape[i] = shape[i], v.stride_bytes[i] = step;
        step *= q8 && i + 1 == v.rank ? shape[i] / 32 : shape[i];
    }
    return v;
}

/// Values and nodes that make a tn_graph; keeps what it points to.
class GraphBuilder {
public:
    uint32_t value(const tn_value &v) {
        values.push_back(v);
        return static_cast<uint32_t>(values.size() - 1);
    }
    void node(uint32_t op, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs, const void *params = nullptr) {
        auto n = make<tn_node>(TN_SIZE_NODE);
        n.op = op, n.params = params;
        operands_.push_back(std::make_unique<std::vector<uint32_t>>(std::move(inputs)));
        n.inputs = operands_.back()->data(), n.input_count = static_cast<uint32_t>(operands_.back()->size());
        operands_.push_back(std::make_unique<std::vector<uint32_t>>(std::move(outputs)));
        n.outputs = operands_.back()->data(), n.output_count = static_cast<uint32_t>(operands_.back()->size());
        nodes.push_back(n);
    }
    const tn_graph *get() {
        graph_ = make<tn_graph>(TN_SIZE_GRAPH);
        graph_.values = values.data(), graph_.value_count = values.size(), graph_.value_stride = sizeof(tn_value);
        graph_.nodes = nodes.data(), graph_.node_count = nodes.size(), graph_.node_stride = sizeof(tn_node);
        graph_.buffer_types = types.data(), graph_.buffer_type_count = types.size();
        graph_.buffer_type_stride = sizeof(tn_buffer_type_info);
        return &graph_;
    }

    std::vector<tn_value> values;
    std::vector<tn_node> nodes;
    std::vector<tn_buffer_type_info> types;

private:
    std::vector<std::unique_ptr<std::vector<uint32_t>>> operands_;
    tn_graph graph_{};
};

/// A list of structs, read by two calls; the first with one place too few.
template <class T, class Call>
std::vector<T> list(Call call) {
    uint64_t n = 0;
    REQUIRE(call(&n, static_cast<T *>(nullptr)) == TN_OK);
    std::vector<T> items(n);
    if constexpr (!std::is_same_v<T, uint32_t>) {
        for (T &item : items) item.struct_size = sizeof(T);
    }
    if (n > 0) {
        uint64_t few = n - 1;
        CHECK(call(&few, items.data()) == TN_TOO_SMALL);
        CHECK(few == n);
    }
    REQUIRE(call(&n, items.data()) == TN_OK);
    return items;
}

const Library &mock_library();

}  // namespace abi_test
#endif
