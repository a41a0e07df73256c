/* The fixture of the registry's tests: a whole plugin in host memory, synchronous, that adds f32 tensors. The faulty
 * plugins beside it are this one with one thing wrong: each defines a macro below and includes this file. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/abi.h"
#include "tenon/ops.h"

#ifndef FIXTURE_NAME
#define FIXTURE_NAME "good"
#endif
#ifndef FIXTURE_ABI
#define FIXTURE_ABI \
    { TN_ABI_MINOR_MIN, TN_ABI_MINOR_MAX }
#endif
#ifndef FIXTURE_FLAGS
#define FIXTURE_FLAGS TN_PLUGIN_CLOSABLE
#endif
/* What load does before it answers TN_OK; may return another status. */
#ifndef FIXTURE_AT_LOAD
#define FIXTURE_AT_LOAD(instance) (void)(instance)
#endif
#ifndef FIXTURE_AT_UNLOAD
#define FIXTURE_AT_UNLOAD(instance) (void)(instance)
#endif
#ifndef FIXTURE_DEVICE_CLOSE
#define FIXTURE_DEVICE_CLOSE device_close
#endif
/* Bytes of the plan table, and what tn_plugin_query_v1 does instead. */
#ifndef FIXTURE_PLAN_BYTES
#define FIXTURE_PLAN_BYTES TN_SIZE_PLAN_API
#endif
#ifndef FIXTURE_ROOT_BYTES
#define FIXTURE_ROOT_BYTES TN_SIZE_PLUGIN
#endif
#ifndef FIXTURE_QUERY
#define FIXTURE_QUERY(host, out) (void)(host), *(out) = &k_plugin
#endif

struct tn_adapter_ {
    tn_instance instance;
};
struct tn_buffer_type_ {
    tn_instance instance;
};
struct tn_instance_ {
    tn_host host;
    tn_registrar registrar;
    struct tn_adapter_ adapter;
    struct tn_buffer_type_ type;
    uint32_t twice;
    atomic_int live;
};
struct tn_device_ {
    tn_instance instance;
    char answers[32]; /* which wrong answers plans give; see plan_* */
    char threads[16];
    int lost;
};
struct tn_buffer_ {
    tn_instance instance;
    unsigned char *base;
    uint64_t bytes;
    int imported;
};
struct tn_stream_ {
    tn_device device;
    tn_status poison;
};
struct tn_event_ {
    tn_device device;
    tn_status status;
};
struct tn_plan_ {
    tn_device device;
    uint64_t values, nodes, bindings;
    uint32_t (*steps)[3];
    uint64_t *bytes;
    tn_place *places;
    unsigned char **bases; /* set 0 */
};

static tn_status fail(tn_instance in, tn_status status, const char *text) {
    in->host.error(in->host.ctx, status, text);
    return status;
}

/* ---- Adapter, device ---- */
static tn_status adapter_memory(tn_adapter adapter, uint64_t *total, uint64_t *avail) {
    (void)adapter;
    *total = 1000;
    *avail = 400;
    return TN_OK;
}

static int keep(char *to, size_t room, const char *text) {
    size_t bytes = strlen(text) + 1;
    if (bytes > room) return 0;
    memcpy(to, text, bytes);
    return 1;
}

static tn_status device_option_set(tn_device d, const char *key, const char *value) {
    tn_instance in = d->instance;
    char text[128];
    if (!strcmp(key, "threads") && keep(d->threads, sizeof d->threads, value)) return TN_OK;
    if (!strcmp(key, "answers") && keep(d->answers, sizeof d->answers, value)) return TN_OK;
    if (!strcmp(key, "isa")) return fail(in, TN_UNSUPPORTED, "isa is read only");
    if (!strcmp(key, "withdraw")) return in->registrar.adapter_withdraw(in->registrar.ctx, &in->adapter);
    if (!strcmp(key, "lose")) d->lost = 1;
    if (!strcmp(key, "lose")) return TN_OK;
    if (!strcmp(key, "status")) return fail(in, (tn_status)atoi(value), "as you wish");
    if (!strcmp(key, "silent")) return (tn_status)atoi(value);
    if (!strcmp(key, "forget")) {
        atomic_fetch_sub(&in->live, 1);
        return TN_OK;
    }
    snprintf(text, sizeof text, FIXTURE_NAME ": unknown option '%.40s'", key);
    return fail(in, TN_INVALID_ARGUMENT, text);
}

static tn_status give_text(const char *text, uint64_t *io, char *out) {
    uint64_t need = strlen(text) + 1, room = *io;
    *io = need;
    if (!out) return TN_OK;
    if (room < need) return TN_TOO_SMALL;
    memcpy(out, text, need);
    return TN_OK;
}

static tn_status device_option_get(tn_device d, const char *key, uint64_t *io, char *out) {
    if (!strcmp(key, "threads")) return give_text(d->threads, io, out);
    if (!strcmp(key, "isa")) return give_text("plain", io, out);
    return fail(d->instance, TN_NOT_FOUND, "no such option");
}

static void device_close(tn_device d) {
    atomic_fetch_sub(&d->instance->live, 1);
    free(d);
}

static tn_status adapter_open(tn_adapter adapter, const tn_open *open, tn_device *out) {
    tn_device d = calloc(1, sizeof *d);
    if (!d) return fail(adapter->instance, TN_OUT_OF_MEMORY, "no memory for a device");
    d->instance = adapter->instance;
    strcpy(d->threads, "1");
    for (uint64_t i = 0; i < open->option_count; ++i) {
        const tn_option *o = (const tn_option *)((const char *)open->options + i * open->option_stride);
        tn_status status = device_option_set(d, o->key, o->value);
        if (status != TN_OK) {
            free(d);
            return status;
        }
    }
    atomic_fetch_add(&d->instance->live, 1);
    *out = d;
    return TN_OK;
}

static tn_status device_buffer_types(tn_device d, uint64_t *io, tn_buffer_type *out) {
    uint64_t room = *io;
    *io = 1;
    if (!out) return TN_OK;
    if (room < 1) return TN_TOO_SMALL;
    *out = &d->instance->type;
    return TN_OK;
}

static const tn_node *node_at(const tn_graph *g, uint64_t i) {
    return (const tn_node *)((const char *)g->nodes + i * g->node_stride);
}
static const tn_value *value_at(const tn_graph *g, uint64_t i) {
    return (const tn_value *)((const char *)g->values + i * g->value_stride);
}

static tn_status device_supports_op(tn_device d, const tn_graph *g, uint32_t *out) {
    if (d->lost) return fail(d->instance, TN_DEVICE_LOST, "the device fell off the bus");
    for (uint64_t i = 0; i < g->node_count; ++i) out[i] = node_at(g, i)->op == TN_OP_ADD ? TN_SUPPORT_YES : 0;
    return TN_OK;
}
static tn_status device_support_reason(tn_device d, const tn_graph *g, uint64_t node, uint64_t *io, char *out) {
    if (node_at(g, node)->op == TN_OP_ADD) return fail(d->instance, TN_INVALID_STATE, "it is supported");
    return give_text("only add", io, out);
}
static tn_status device_supports_buffer_type(tn_device d, const tn_buffer_type_info *type, uint32_t *out) {
    (void)d;
    *out = (type->flags & TN_TYPE_IS_HOST) != 0;
    return TN_OK;
}

/* ---- Memory ---- */
static const tn_buffer_type_info k_type = {.struct_size = TN_SIZE_BUFFER_TYPE_INFO,
                                           .name = FIXTURE_NAME ".host",
                                           .owner = {1, 2, 3},
                                           .memory = TN_MEMORY_HOST,
                                           .flags = TN_TYPE_IS_HOST | TN_TYPE_CAN_IMPORT,
                                           .alignment = 64,
                                           .max_bytes = 1 << 20};

static tn_status type_info(tn_buffer_type type, tn_buffer_type_info *out) {
    (void)type;
    tn_write(out, &k_type);
    return TN_OK;
}

static tn_status make_buffer(tn_instance in, void *base, uint64_t bytes, tn_buffer *out) {
    tn_buffer b = calloc(1, sizeof *b);
    void *memory = base;
    if (!b) return fail(in, TN_OUT_OF_MEMORY, "no memory for a buffer");
    if (!base) {
        tn_status status = in->host.alloc(in->host.ctx, bytes, 64, &memory);
        if (status != TN_OK) {
            free(b);
            return fail(in, status, "the host has no memory for a buffer");
        }
    }
    *b = (struct tn_buffer_){in, memory, bytes, base != 0};
    atomic_fetch_add(&in->live, 1);
    *out = b;
    return TN_OK;
}
static tn_status type_alloc(tn_buffer_type type, uint64_t bytes, uint32_t usage, tn_buffer *out) {
    (void)usage;
    return make_buffer(type->instance, 0, bytes, out);
}
static tn_status type_import(tn_buffer_type type, void *ptr, uint64_t bytes, uint32_t writable, tn_buffer *out) {
    (void)writable;
    if ((uintptr_t)ptr % 64) return fail(type->instance, TN_UNSUPPORTED, "the memory isn't aligned to 64 bytes");
    return make_buffer(type->instance, ptr, bytes, out);
}
static uint64_t bytes_of(const tn_value *v) {
    uint64_t bytes = 4;
    for (uint32_t i = 0; i < v->rank; ++i) bytes *= (uint64_t)v->shape[i];
    return bytes;
}
static tn_status type_tensor_bytes(tn_buffer_type type, const tn_value *v, uint64_t *out) {
    if (v->type != TN_TYPE_ID_F32) return fail(type->instance, TN_UNSUPPORTED, "only f32");
    *out = v->name && !strcmp(v->name, "shrunk") ? 1 : bytes_of(v);
    return TN_OK;
}

static void buffer_destroy(tn_buffer b) {
    tn_instance in = b->instance;
    if (!b->imported) in->host.dealloc(in->host.ctx, b->base, b->bytes, 64);
    atomic_fetch_sub(&in->live, 1);
    free(b);
}
static tn_status buffer_info(tn_buffer b, tn_buffer_info *out) {
    tn_buffer_info own = {TN_SIZE_BUFFER_INFO, 0, b->base, b->bytes};
    tn_write(out, &own);
    return TN_OK;
}
static tn_status range(tn_buffer b, const tn_value *v, uint64_t offset, uint64_t bytes, unsigned char **out) {
    uint64_t all = bytes_of(v);
    if (offset > all || bytes > all - offset || v->offset > b->bytes || all > b->bytes - v->offset)
        return fail(b->instance, TN_INVALID_ARGUMENT, "the range is beyond tensor or buffer");
    *out = b->base + v->offset + offset;
    return TN_OK;
}
static tn_status buffer_set(tn_buffer b, const tn_value *v, uint64_t offset, const void *src, uint64_t bytes) {
    unsigned char *at;
    tn_status status = range(b, v, offset, bytes, &at);
    if (status == TN_OK) memcpy(at, src, bytes);
    return status;
}
static tn_status buffer_get(tn_buffer b, const tn_value *v, uint64_t offset, void *dst, uint64_t bytes) {
    unsigned char *at;
    tn_status status = range(b, v, offset, bytes, &at);
    if (status == TN_OK) memcpy(dst, at, bytes);
    return status;
}
static tn_status buffer_fill(tn_buffer b, const tn_value *v, uint64_t offset, uint64_t bytes, uint8_t byte) {
    unsigned char *at;
    tn_status status = range(b, v, offset, bytes, &at);
    if (status == TN_OK) memset(at, byte, bytes);
    return status;
}
static tn_status buffer_clear(tn_buffer b, uint8_t byte) {
    memset(b->base, byte, b->bytes);
    return TN_OK;
}

/* ---- Stream, event ---- */
static tn_status stream_create(tn_device d, tn_stream *out) {
    tn_stream s = calloc(1, sizeof *s);
    if (!s) return fail(d->instance, TN_OUT_OF_MEMORY, "no memory for a stream");
    s->device = d;
    atomic_fetch_add(&d->instance->live, 1);
    *out = s;
    return TN_OK;
}
static void stream_destroy(tn_stream s) {
    atomic_fetch_sub(&s->device->instance->live, 1);
    free(s);
}
static tn_status stream_set(tn_stream s, tn_buffer b, const tn_value *v, uint64_t offset, const void *src,
                            uint64_t bytes) {
    return s->poison ? TN_OK : buffer_set(b, v, offset, src, bytes);
}
static tn_status stream_get(tn_stream s, tn_buffer b, const tn_value *v, uint64_t offset, void *dst, uint64_t bytes) {
    return s->poison ? TN_OK : buffer_get(b, v, offset, dst, bytes);
}
static tn_status stream_synchronize(tn_stream s, uint64_t timeout_ns) {
    tn_status status = s->poison;
    (void)timeout_ns;
    s->poison = TN_OK;
    return status == TN_OK ? status : fail(s->device->instance, status, "a run was stopped");
}
static tn_status event_create(tn_device d, tn_event *out) {
    tn_event e = calloc(1, sizeof *e);
    if (!e) return fail(d->instance, TN_OUT_OF_MEMORY, "no memory for an event");
    e->device = d;
    atomic_fetch_add(&d->instance->live, 1);
    *out = e;
    return TN_OK;
}
static void event_destroy(tn_event e) {
    atomic_fetch_sub(&e->device->instance->live, 1);
    free(e);
}
static tn_status event_record(tn_event e, tn_stream s) {
    e->status = s->poison;
    return TN_OK;
}
static tn_status event_wait(tn_event e, tn_stream s) {
    if (!s->poison) s->poison = e->status;
    return TN_OK;
}
static tn_status event_synchronize(tn_event e, uint64_t timeout_ns) {
    (void)timeout_ns;
    return e->status == TN_OK ? TN_OK : fail(e->device->instance, e->status, "what the event waits for has failed");
}

#include "good_plan.h"

/* ---- A vendor op: y = x + x ---- */
static tn_status twice_infer(void *ctx, const tn_graph *g, const tn_node *n, uint64_t stride, tn_value *out) {
    const tn_value *x = value_at(g, n->inputs[0]);
    (void)stride;
    if (x->type != TN_TYPE_ID_F32) return fail(ctx, TN_INVALID_ARGUMENT, "twice: x isn't f32");
    out->type = x->type;
    out->rank = x->rank;
    memcpy(out->shape, x->shape, sizeof out->shape);
    return TN_OK;
}

/* ---- Plugin ---- */
static tn_status plugin_load(const tn_host *host, const tn_registrar *registrar, uint32_t minor, tn_instance *out) {
    tn_instance in = calloc(1, sizeof *in);
    tn_adapter_info info = {.struct_size = TN_SIZE_ADAPTER_INFO,
                            .name = FIXTURE_NAME ":0",
                            .description = "a device for tests",
                            .bus_id = "",
                            .kind = TN_KIND_CPU};
    tn_op_info twice = {.struct_size = TN_SIZE_OP_INFO,
                        .name = "fixture.twice",
                        .version = 1,
                        .min_inputs = 1,
                        .max_inputs = 1,
                        .output_count = 1,
                        .infer = twice_infer};
    (void)minor;
    if (!in) return TN_OUT_OF_MEMORY;
    tn_read(&in->host, TN_SIZE_HOST, host);
    tn_read(&in->registrar, TN_SIZE_REGISTRAR, registrar);
    in->adapter.instance = in->type.instance = in;
    twice.ctx = in;
    registrar->adapter_add(registrar->ctx, &in->adapter, &info);
    registrar->buffer_type_add(registrar->ctx, &in->type, &k_type);
    registrar->op_add(registrar->ctx, &twice, &in->twice);
    *out = in; /* a faulty load undoes this line */
    FIXTURE_AT_LOAD(in);
    return TN_OK;
}
static tn_status plugin_unload(tn_instance in) {
    if (in->live) return fail(in, TN_BUSY, "objects are alive");
    FIXTURE_AT_UNLOAD(in);
    free(in);
    return TN_OK;
}

static const tn_adapter_api k_adapter_api = {TN_SIZE_ADAPTER_API, 0, adapter_memory, adapter_open};
static const tn_device_api k_device_api = {.struct_size = TN_SIZE_DEVICE_API,
                                           .close = FIXTURE_DEVICE_CLOSE,
                                           .option_set = device_option_set,
                                           .option_get = device_option_get,
                                           .buffer_types = device_buffer_types,
                                           .supports_op = device_supports_op,
                                           .support_reason = device_support_reason,
                                           .supports_buffer_type = device_supports_buffer_type};
static const tn_buffer_type_api k_buffer_type_api = {TN_SIZE_BUFFER_TYPE_API, 0,          type_info, type_alloc,
                                                     type_tensor_bytes,       type_import};
static const tn_buffer_api k_buffer_api = {.struct_size = TN_SIZE_BUFFER_API,
                                           .destroy = buffer_destroy,
                                           .info = buffer_info,
                                           .set = buffer_set,
                                           .get = buffer_get,
                                           .fill = buffer_fill,
                                           .clear = buffer_clear};
static const tn_stream_api k_stream_api = {.struct_size = TN_SIZE_STREAM_API,
                                           .create = stream_create,
                                           .destroy = stream_destroy,
                                           .set = stream_set,
                                           .get = stream_get,
                                           .synchronize = stream_synchronize};
static const tn_event_api k_event_api = {TN_SIZE_EVENT_API, 0,          event_create,     event_destroy,
                                         event_record,      event_wait, event_synchronize};
static const struct {
    tn_plan_api table;
    void *later[4]; /* entries of a minor that this host doesn't know */
} k_plan_api = {{.struct_size = FIXTURE_PLAN_BYTES,
                 .prepare = plan_prepare,
                 .destroy = plan_destroy,
                 .groups = plan_groups,
                 .node_groups = plan_node_groups,
                 .unstored = plan_unstored,
                 .in_place = plan_in_place,
                 .place = plan_place,
                 .bind = plan_bind,
                 .run = plan_run},
                {0}};
static const struct {
    tn_plugin table;
    void *later[4];
} k_root = {{.struct_size = FIXTURE_ROOT_BYTES,
             .abi = FIXTURE_ABI,
             .name = FIXTURE_NAME,
             .vendor = "Tenon",
             .version = "1.2.3",
             .guid = {1, 2, 3},
             .flags = FIXTURE_FLAGS,
             .load = plugin_load,
             .unload = plugin_unload,
             .adapter = &k_adapter_api,
             .device = &k_device_api,
             .buffer_type = &k_buffer_type_api,
             .buffer = &k_buffer_api,
             .stream = &k_stream_api,
             .event = &k_event_api,
             .plan = &k_plan_api.table},
            {0}};
#define k_plugin k_root.table

#ifndef FIXTURE_WITHOUT_EXPORT
TN_EXPORT tn_status tn_plugin_query_v1(const tn_host *host, const tn_plugin **out) {
    FIXTURE_QUERY(host, out);
    return TN_OK;
}
#else
TN_EXPORT const tn_plugin *fixture_root(void) {
    return &k_plugin;
}
#endif
