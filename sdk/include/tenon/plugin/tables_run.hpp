// The tables of what runs: streams, events, plans.
#ifndef TENON_PLUGIN_TABLES_RUN_HPP
#define TENON_PLUGIN_TABLES_RUN_HPP

#include "tenon/plugin/border.hpp"

namespace tenon::plugin::detail {

inline void check_same_device(const Event &event, const Stream &stream) {
    if (&event.device() != &stream.device())
        fail(TN_INVALID_ARGUMENT, "the event belongs to another device than the stream");
}

inline constexpr tn_stream_api kStreamApi = {
    TN_SIZE_STREAM_API, nullptr,
    /* create */
    [](tn_device h, tn_stream *out) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            d.check_alive();
            need(out, "out");
            Border::hand_out(d.instance(), d.make_stream(), out);
        });
    },
    /* destroy */
    [](tn_stream h) noexcept {
        if (Stream *s = from(h)) Border::take_back(s->device().instance(), s);
    },
    /* set */
    [](tn_stream h, tn_buffer buffer, const tn_value *tensor, uint64_t offset, const void *src,
       uint64_t bytes) noexcept -> tn_status {
        return call(h, [&](Stream &s) {
            if (s.device().lost()) return;  // poisoned: skipped (D27)
            Buffer &b = *need(from(buffer), "the buffer");
            const ValueView v = read_range(b, tensor, offset, bytes);
            if (bytes != 0) s.set(b, v, offset, need(src, "src"), bytes);
        });
    },
    /* get */
    [](tn_stream h, tn_buffer buffer, const tn_value *tensor, uint64_t offset, void *dst,
       uint64_t bytes) noexcept -> tn_status {
        return call(h, [&](Stream &s) {
            if (s.device().lost()) return;
            Buffer &b = *need(from(buffer), "the buffer");
            const ValueView v = read_range(b, tensor, offset, bytes);
            if (bytes != 0) s.get(b, v, offset, need(dst, "dst"), bytes);
        });
    },
    /* copy */
    [](tn_stream h, tn_buffer dst, const tn_value *dst_tensor, tn_buffer src,
       const tn_value *src_tensor) noexcept -> tn_status {
        return call(h, [&](Stream &s) {
            if (s.device().lost()) return;
            Buffer &to_buffer = *need(from(dst), "the destination buffer");
            Buffer &from_buffer = *need(from(src), "the source buffer");
            ValueView to, of;
            if (!read_copy(to_buffer, dst_tensor, from_buffer, src_tensor, to, of)) {
                fail(TN_UNSUPPORTED, "no direct copy between these buffers");
            }
            s.copy(to_buffer, to, from_buffer, of);
        });
    },
    /* synchronize */
    [](tn_stream h, uint64_t timeout_ns) noexcept -> tn_status {
        return call(h, [&](Stream &s) { s.synchronize(timeout_ns); });
    }};

inline constexpr tn_event_api kEventApi = {TN_SIZE_EVENT_API, nullptr,
                                           /* create */
                                           [](tn_device h, tn_event *out) noexcept -> tn_status {
                                               return call(h, [&](Device &d) {
                                                   d.check_alive();
                                                   need(out, "out");
                                                   Border::hand_out(d.instance(), d.make_event(), out);
                                               });
                                           },
                                           /* destroy */
                                           [](tn_event h) noexcept {
                                               if (Event *e = from(h)) Border::take_back(e->device().instance(), e);
                                           },
                                           /* record */
                                           [](tn_event h, tn_stream stream) noexcept -> tn_status {
                                               return call(h, [&](Event &e) {
                                                   Stream &s = *need(from(stream), "the stream");
                                                   check_same_device(e, s);
                                                   e.record(s);
                                               });
                                           },
                                           /* wait */
                                           [](tn_event h, tn_stream stream) noexcept -> tn_status {
                                               return call(h, [&](Event &e) {
                                                   Stream &s = *need(from(stream), "the stream");
                                                   check_same_device(e, s);
                                                   e.wait(s);
                                               });
                                           },
                                           /* synchronize */
                                           [](tn_event h, uint64_t timeout_ns) noexcept -> tn_status {
                                               return call(h, [&](Event &e) { e.synchronize(timeout_ns); });
                                           }};

inline std::unique_ptr<Plan> prepare(Device &device, const tn_graph *graph) {
    device.check_alive();
    auto own = GraphReader::read(graph);
    for (const NodeView &node : own->nodes()) {
        const Support support = ask(device, *own, node);
        if (!support) fail(TN_UNSUPPORTED, own->describe(node), " isn't supported: ", support.reason);
        const OpInfo *op = find_op(node.op);
        if (op != nullptr && op->alias == OpAlias::kMust0 && own->base(node.outputs[0]) != own->base(node.inputs[0])) {
            fail(TN_INVALID_ARGUMENT, own->describe(node), ": its output must share the first input's bytes");
        }
    }
    std::unique_ptr<Plan> plan = device.prepare(std::move(own));
    if (plan == nullptr) fail(TN_INTERNAL, "no plan was made");
    Border::finish(*plan);
    return plan;
}

/// update: same ops, values, shapes and flags; only params may differ.
inline void check_same_graph(const GraphView &now, const GraphView &next) {
    auto same_value = [](const ValueView &a, const ValueView &b) {
        return a.type == b.type && a.rank == b.rank && a.shape == b.shape && a.stride == b.stride &&
               a.flags == b.flags && a.view_of == b.view_of && a.offset == b.offset;
    };
    auto same_node = [](const NodeView &a, const NodeView &b) {
        return a.op == b.op && a.precision == b.precision && std::ranges::equal(a.inputs, b.inputs) &&
               std::ranges::equal(a.outputs, b.outputs);
    };
    if (!std::ranges::equal(now.values(), next.values(), same_value) ||
        !std::ranges::equal(now.nodes(), next.nodes(), same_node)) {
        fail(TN_INVALID_ARGUMENT, "the graph differs from the plan's in more than params");
    }
}

inline constexpr tn_plan_api kPlanApi = {
    TN_SIZE_PLAN_API, nullptr,
    /* prepare */
    [](tn_device h, const tn_graph *graph, tn_plan *out) noexcept -> tn_status {
        return call(h, [&](Device &d) {
            need(out, "out");
            Border::hand_out(d.instance(), prepare(d, graph), out);
        });
    },
    /* destroy */
    [](tn_plan h) noexcept {
        if (Plan *p = from(h)) Border::take_back(p->device().instance(), p);
    },
    /* groups */
    [](tn_plan h, uint64_t *io_count, uint64_t stride, tn_group *out) noexcept -> tn_status {
        return call(h, [&](Plan &p) {
            std::vector<tn_group> own;
            for (const Plan::Group &group : p.groups) {
                own.push_back(make_struct<tn_group>());
                own.back().scratch_bytes = group.scratch_bytes;
            }
            give_structs<tn_group>(own, io_count, stride, out);
        });
    },
    /* node_groups */
    [](tn_plan h, uint64_t *io_count, uint32_t *out) noexcept -> tn_status {
        return call(h, [&](Plan &p) { give_items<uint32_t>(p.node_groups, io_count, out); });
    },
    /* unstored */
    [](tn_plan h, uint64_t *io_count, uint32_t *out) noexcept -> tn_status {
        return call(h, [&](Plan &p) { give_items<uint32_t>(p.unstored, io_count, out); });
    },
    /* in_place */
    [](tn_plan h, uint64_t *io_count, uint64_t stride, tn_in_place *out) noexcept -> tn_status {
        return call(h, [&](Plan &p) {
            std::vector<tn_in_place> own;
            for (const Plan::InPlace &pair : p.in_place) {
                own.push_back(make_struct<tn_in_place>());
                own.back().output = pair.output, own.back().input = pair.input;
            }
            give_structs<tn_in_place>(own, io_count, stride, out);
        });
    },
    /* place */
    [](tn_plan h, const tn_placement *placement) noexcept -> tn_status {
        return call(h, [&](Plan &p) {
            p.device().check_alive();
            Border::place(p, read_struct(placement));
        });
    },
    /* bind */
    [](tn_plan h, const tn_bind *bind) noexcept -> tn_status {
        return call(h, [&](Plan &p) {
            p.device().check_alive();
            Border::bind(p, read_struct(bind));
        });
    },
    /* run */
    [](tn_plan h, tn_stream stream, const tn_run *run) noexcept -> tn_status {
        return call(h, [&](Plan &p) {
            Stream &s = *need(from(stream), "the stream");
            const tn_run own = read_struct(run);
            check_zero(own.reserved, "tn_run");
            if (&s.device() != &p.device())
                fail(TN_INVALID_ARGUMENT, "the stream belongs to another device than the plan");
            s.run(p, Border::bound_set(p, own.set), own.cancel_token);
        });
    },
    /* update */
    [](tn_plan h, const tn_graph *graph) noexcept -> tn_status {
        return call(h, [&](Plan &p) {
            p.device().check_alive();
            auto own = GraphReader::read(graph);
            check_same_graph(p.graph(), *own);
            for (const NodeView &node : own->nodes()) {
                if (!ask(p.device(), *own, node))
                    fail(TN_UNSUPPORTED, own->describe(node), " isn't supported with these params");
            }
            if (!Border::update(p, std::move(own))) fail(TN_UNSUPPORTED, "the plan can't be updated");
        });
    }};

}  // namespace tenon::plugin::detail
#endif
