#include "registry/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace tenon {
namespace {

template <class... A>
tn_status stub_status(A...) {
    return TN_UNIMPLEMENTED;
}

// One table on its way into the host's copy. The first failure is kept.
template <class T>
class Table {
public:
    Table(const char *name, const T *from, uint64_t v1_bytes, uint64_t own_bytes, T &to) : name_(name), to_(to) {
        if (!from) {
            status_ = Status::invalid_argument(fmt::format("its table '{}' is missing", name));
        } else if (from->struct_size < v1_bytes) {
            status_ = Status::invalid_argument(fmt::format("its table '{}' is too short: {} bytes, version 1 has {}",
                                                           name, from->struct_size, v1_bytes));
        } else {
            tn_read(&to, own_bytes, from);
        }
    }

    template <class F>
    Table &required(F T::*field, const char *what) {
        if (status_.ok() && !within(field)) {
            status_ = Status::invalid_argument(fmt::format("it lacks the required function {}.{}", name_, what));
        }
        return *this;
    }
    template <class... A>
    Table &optional(tn_status (*T::*field)(A...)) {
        if (!within(field)) to_.*field = stub_status<A...>;
        return *this;
    }
    Status done() { return std::move(status_); }

private:
    // A size that ends inside a field ends before it (D05).
    template <class F>
    bool within(F T::*field) const {
        auto end = reinterpret_cast<const char *>(&(to_.*field) + 1) - reinterpret_cast<const char *>(&to_);
        return uint64_t(end) <= to_.struct_size && to_.*field;
    }

    const char *name_;
    T &to_;
    Status status_;
};

Status read_device_side(PluginTables &t) {
    using A = tn_adapter_api;
    TENON_TRY(Table("adapter", t.root.adapter, TN_V1_ADAPTER_API, TN_SIZE_ADAPTER_API, t.adapter)
                  .required(&A::memory, "memory")
                  .required(&A::open, "open")
                  .done());
    using D = tn_device_api;
    TENON_TRY(Table("device", t.root.device, TN_V1_DEVICE_API, TN_SIZE_DEVICE_API, t.device)
                  .required(&D::close, "close")
                  .required(&D::option_set, "option_set")
                  .required(&D::option_get, "option_get")
                  .required(&D::buffer_types, "buffer_types")
                  .required(&D::supports_op, "supports_op")
                  .required(&D::support_reason, "support_reason")
                  .required(&D::supports_buffer_type, "supports_buffer_type")
                  .done());
    using T = tn_buffer_type_api;
    TENON_TRY(Table("buffer_type", t.root.buffer_type, TN_V1_BUFFER_TYPE_API, TN_SIZE_BUFFER_TYPE_API, t.buffer_type)
                  .required(&T::info, "info")
                  .required(&T::alloc, "alloc")
                  .required(&T::tensor_bytes, "tensor_bytes")
                  .optional(&T::import_host)
                  .done());
    using B = tn_buffer_api;
    return Table("buffer", t.root.buffer, TN_V1_BUFFER_API, TN_SIZE_BUFFER_API, t.buffer)
        .required(&B::destroy, "destroy")
        .required(&B::info, "info")
        .required(&B::set, "set")
        .required(&B::get, "get")
        .required(&B::fill, "fill")
        .required(&B::clear, "clear")
        .optional(&B::init_tensor)
        .optional(&B::copy)
        .optional(&B::reset)
        .optional(&B::set_usage)
        .optional(&B::set_2d)
        .optional(&B::get_2d)
        .done();
}

Status read_running_side(PluginTables &t) {
    using S = tn_stream_api;
    TENON_TRY(Table("stream", t.root.stream, TN_V1_STREAM_API, TN_SIZE_STREAM_API, t.stream)
                  .required(&S::create, "create")
                  .required(&S::destroy, "destroy")
                  .required(&S::set, "set")
                  .required(&S::get, "get")
                  .required(&S::synchronize, "synchronize")
                  .optional(&S::copy)
                  .done());
    using E = tn_event_api;
    TENON_TRY(Table("event", t.root.event, TN_V1_EVENT_API, TN_SIZE_EVENT_API, t.event)
                  .required(&E::create, "create")
                  .required(&E::destroy, "destroy")
                  .required(&E::record, "record")
                  .required(&E::wait, "wait")
                  .required(&E::synchronize, "synchronize")
                  .done());
    using P = tn_plan_api;
    return Table("plan", t.root.plan, TN_V1_PLAN_API, TN_SIZE_PLAN_API, t.plan)
        .required(&P::prepare, "prepare")
        .required(&P::destroy, "destroy")
        .required(&P::place, "place")
        .required(&P::bind, "bind")
        .required(&P::run, "run")
        .optional(&P::groups)
        .optional(&P::node_groups)
        .optional(&P::unstored)
        .optional(&P::in_place)
        .optional(&P::update)
        .done();
}

}  // namespace

Status read_tables(const tn_plugin *root, tn_range host, PluginTables &out, uint32_t &minor) {
    using R = tn_plugin;
    Table table("plugin", root, TN_V1_PLUGIN, TN_SIZE_PLUGIN, out.root);
    TENON_TRY(table.done());
    const tn_range own = out.root.abi;
    const uint32_t low = std::max(host.min, own.min), high = std::min(host.max, own.max);
    if (low > high) {
        return Status::unsupported(
            fmt::format("it speaks ABI 1.{} to 1.{}, this host 1.{} to 1.{}", own.min, own.max, host.min, host.max));
    }
    TENON_TRY(table.required(&R::name, "name")
                  .required(&R::vendor, "vendor")
                  .required(&R::version, "version")
                  .required(&R::load, "load")
                  .required(&R::unload, "unload")
                  .optional(&R::extension)
                  .done());
    TENON_TRY(read_device_side(out));
    TENON_TRY(read_running_side(out));
    minor = high;
    return {};
}

}  // namespace tenon
