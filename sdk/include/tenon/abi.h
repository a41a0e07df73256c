/* Tenon plugin ABI, version 1: everything that crosses between the host and a device plugin.
 *
 * A plugin is one shared object with one export, tn_plugin_query_v1. It links nothing of Tenon: all that it needs comes
 * in tn_host, all that it offers goes out in tables of functions. This file includes only two standard headers.
 *
 * How to read the comments
 *   D01 ...     a duty of the plugin. Numbers are frozen; each has one test of that name in the conformance kit.
 *   H01 ...     a duty of the host, on which a plugin may rely; the validation shim checks these too.
 *   [any]       may be called from any thread, also at the same time for one object
 *   [object]    any thread, but one call at a time for this object
 *   [exclusive] while it runs, no other call touches this object or what was made from it
 *   -> CODE     answers of its own; TN_INVALID_ARGUMENT, TN_OUT_OF_MEMORY, TN_DEVICE_LOST, TN_INTERNAL are always possible
 *   optional    may be left out of its table (0): the host's copy then holds a stub that answers TN_UNIMPLEMENTED, and
 *               the host falls back as the comment says. All else is there from 1.0 on.
 *   since 1.N   absent from a table made before; the reader's copy holds the same stub
 *
 * Duties that hold for every call
 *   D01  Answer with a status; on failure leave every output untouched. The one exception: see "Lists".
 *   D02  Give the sink a text (tn_host.error) before answering anything but TN_OK, TN_UNIMPLEMENTED, TN_TOO_SMALL and
 *        TN_TIMEOUT, on the calling thread, so that the host can pair the two.
 *   D03  Never abort, exit, raise, fork, install a handler, read the environment in its own code, write to stdout or stderr, change the
 *        process's locale, working directory, signal mask or rounding mode, or let an exception cross the border.
 *   D04  Keep no pointer that the host passed beyond the call, except where a comment says so. Copy.
 *   D05  Read a struct only up to its struct_size; write an output struct only up to the smaller of both sizes.
 *        A size that ends inside a field ends before that field.
 *   D06  Step through arrays by the given stride, never by sizeof.
 *   D07  Refuse with TN_INVALID_ARGUMENT: a size below the v1 prefix, a reserved word that isn't zero, a flag bit that
 *        isn't listed here, an index out of range. Refuse with TN_UNSUPPORTED: a chained struct that is unknown and
 *        marked required. Ignore other unknown chained structs.
 *   D08  Take ownership only with TN_OK: an object that failed to be made doesn't exist and isn't freed.
 *   D09  Keep no state outside tn_instance and what hangs on it, unless TN_PLUGIN_SINGLE is set.
 *   D10  Hold no lock across a call into tn_host or tn_registrar. H01: the host holds none across a call into a plugin,
 *        and calls no plugin function from inside tn_host or tn_registrar functions.
 *   D11  Treat a status that this header doesn't list as TN_INTERNAL.
 *   D12  Never touch another plugin's handle. Foreign memory arrives as an address, or not at all.
 *        H02: the host never passes a handle to a plugin that didn't make it.
 *   H03  Children are freed before parents; nothing queued refers to what is freed, closed, rebound or updated.
 *   H05  The host sends no flag, code or required extension that the chosen minor lacks. (Ops and types may be newer: D21.)
 */
#ifndef TENON_ABI_H
#define TENON_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Versions and sizes --------------------------------------------------------------------------------------- */

/* The major is in the export's name. These are the minors that a plugin built with this file can serve; the host takes
 * the highest that both ranges hold, or refuses before load. Neither number is ever compared by a plugin. */
#define TN_ABI_MINOR_MIN 0
#define TN_ABI_MINOR_MAX 0

/* Bytes up to and including a field: what struct_size holds. Not sizeof, which counts tail padding, where a later minor
 * may have put a field. Per struct S, TN_SIZE_S is the size in this file and TN_V1_S the prefix that 1.0 had. */
#define TN_END(type, field) ((uint64_t)(offsetof(type, field) + sizeof(((type *)0)->field)))

/* Whether a table or struct, as received, holds a field that is set. */
#define TN_HAS(ptr, type, field) ((ptr)->struct_size >= TN_END(type, field) && (ptr)->field != 0)

/* Every struct starts so, elements of arrays too. struct_size is set by whoever owns the memory, also for outputs.
 * next is 0 or points to a tn_ext, valid as long as the struct is. */
#define TN_HEAD           \
    uint64_t struct_size; \
    const void *next

#define TN_MAX_RANK 8
#define TN_NONE 0xffffffffu /* no index: an absent optional input, a value without storage, no buffer type */

#if defined(_WIN32)
#define TN_EXPORT __declspec(dllexport)
#else
#define TN_EXPORT __attribute__((visibility("default")))
#endif

/* First fields of whatever hangs on a next pointer; the extension's own fields follow. */
typedef struct tn_ext {
    TN_HEAD;
    const char *name; /* "tenon.x", "acme.y" */
    uint32_t flags;   /* TN_EXT_REQUIRED */
    uint32_t reserved;
} tn_ext;
#define TN_EXT_REQUIRED 1u
#define TN_SIZE_EXT TN_END(tn_ext, reserved)
#define TN_V1_EXT TN_END(tn_ext, reserved)

/* Frozen for all of version 1; the only struct without a head. */
typedef struct tn_range {
    uint32_t min, max; /* both included */
} tn_range;

/* ---- Status ---------------------------------------------------------------------------------------------------- */

typedef int32_t tn_status; /* append-only */
#define TN_OK 0
#define TN_UNIMPLEMENTED 1    /* the function isn't there; the host falls back */
#define TN_INVALID_ARGUMENT 2 /* the caller broke this contract */
#define TN_INVALID_STATE 3    /* the call is right, its moment wrong (run before bind) */
#define TN_UNSUPPORTED 4      /* understood, but not offered for these operands; the host falls back */
#define TN_OUT_OF_MEMORY 5    /* nothing was lost; fewer or smaller requests may succeed */
#define TN_TOO_SMALL 6        /* list capacity; see "Lists" */
#define TN_NOT_FOUND 7        /* no such name */
#define TN_BUSY 8             /* live objects, or in use elsewhere */
#define TN_TIMEOUT 9          /* not done within the given time; nothing changed */
#define TN_CANCELLED 10       /* the run's token was raised; its outputs are undefined, all else intact */
#define TN_DEVICE_LOST 11     /* for good: free the objects, close the device, open another */
#define TN_DENIED 12          /* rights or licence */
#define TN_INTERNAL 13        /* a bug or an error without a better code */

/* ---- Lists ------------------------------------------------------------------------------------------------------ */
/* A list function takes (..., uint64_t *io_count, uint64_t stride, T *out). With out = 0 it stores the length. Otherwise
 * *io_count is the capacity; all elements are written and the length stored. Capacity too small: TN_TOO_SMALL, the length
 * is stored and out left untouched, which is the exception to D01. The caller sets struct_size in every element.
 * Text is a list of char with its final 0 counted, and no stride. */

/* ---- Handles ---------------------------------------------------------------------------------------------------- */
/* Made by a plugin, opaque to the host; a plugin defines the structs as it likes. No handle is ever 0. */
typedef struct tn_instance_ *tn_instance;       /* one load of the plugin by one host */
typedef struct tn_adapter_ *tn_adapter;         /* a device that could be opened */
typedef struct tn_device_ *tn_device;           /* an opened adapter */
typedef struct tn_buffer_type_ *tn_buffer_type; /* a kind of memory, with its layout of weights */
typedef struct tn_buffer_ *tn_buffer;
typedef struct tn_stream_ *tn_stream; /* work in order */
typedef struct tn_event_ *tn_event;   /* a point in a stream */
typedef struct tn_plan_ *tn_plan;     /* a segment made ready to run */

/* ---- Descriptors: flat, plain, valid during the call only -------------------------------------------------------- */

typedef struct tn_option {
    TN_HEAD;
    const char *key, *value; /* UTF-8 */
} tn_option;
#define TN_SIZE_OPTION TN_END(tn_option, value)
#define TN_V1_OPTION TN_END(tn_option, value)

#define TN_MEMORY_HOST 0u
#define TN_MEMORY_DEVICE 1u
#define TN_MEMORY_PINNED 2u
#define TN_MEMORY_HIGH_BANDWIDTH 3u

#define TN_TYPE_IS_HOST 1u /* tn_buffer_info.base can be read and written by the CPU, canonical layout */
#define TN_TYPE_PACKED 2u  /* own layout for weights: base is of no use to others */
#define TN_TYPE_CAN_IMPORT 4u

/* A buffer type as others see it: enough to judge a foreign one without its handle. */
typedef struct tn_buffer_type_info {
    TN_HEAD;
    const char *name;   /* "null.host"; unique with the adapter's name; valid until withdrawn or device close */
    uint8_t owner[16];  /* the plugin's guid */
    uint32_t memory;    /* TN_MEMORY_ */
    uint32_t flags;     /* TN_TYPE_ */
    uint64_t alignment; /* of offsets, a power of two */
    uint64_t max_bytes; /* of one buffer; 0 = no limit */
} tn_buffer_type_info;
#define TN_SIZE_BUFFER_TYPE_INFO TN_END(tn_buffer_type_info, max_bytes)
#define TN_V1_BUFFER_TYPE_INFO TN_END(tn_buffer_type_info, max_bytes)

#define TN_VALUE_INPUT 1u  /* written by the host before a run */
#define TN_VALUE_WEIGHT 2u /* constant for the plan's life */
#define TN_VALUE_STATE 4u  /* read and written, lives across runs (KV cache) */
/* Someone reads it after the run, another segment included: it must be written. On a view it speaks of the base. */
#define TN_VALUE_OBSERVED 8u

/* A tensor. Row-major, last dimension innermost; strides >= 0, 0 = broadcast and only for inputs. Block types: the last
 * dimension is contiguous whole blocks and its stride is the bytes of one block. rank 0 is a scalar; a 0 in shape makes
 * it empty, which is legal. Entries of shape and stride past rank are 1 and 0. */
typedef struct tn_value {
    TN_HEAD;
    uint32_t type; /* dtypes.def */
    uint32_t rank;
    int64_t shape[TN_MAX_RANK];
    int64_t stride_bytes[TN_MAX_RANK];
    uint32_t flags;       /* TN_VALUE_ */
    uint32_t buffer_type; /* index into tn_graph.buffer_types if it is already bound; TN_NONE: the device's default */
    uint32_t view_of;     /* the value whose bytes it shares (view, or output that must alias), never itself a view;
                             TN_NONE: has bytes of its own */
    uint32_t reserved;
    uint64_t offset;  /* of element 0: from view_of's element 0 in a graph, from the buffer's base in buffer calls */
    uint64_t cookie;  /* buffer and stream calls: what init_tensor stored, for views the base's; in a graph 0 */
    const char *name; /* for messages, may be 0; has no meaning */
} tn_value;
#define TN_SIZE_VALUE TN_END(tn_value, name)
#define TN_V1_VALUE TN_END(tn_value, name)

#define TN_PRECISION_FAST 0u
#define TN_PRECISION_EXACT 1u

typedef struct tn_node {
    TN_HEAD;
    uint32_t op; /* ops.def, or from 0x80000000 what op_add stored */
    uint32_t precision;
    const void *params;     /* the op's struct with head, 8-aligned; 0 where the op has none */
    const uint32_t *inputs; /* values; TN_NONE where an optional input is absent */
    const uint32_t *outputs;
    uint32_t input_count, output_count;
} tn_node;
#define TN_SIZE_NODE TN_END(tn_node, output_count)
#define TN_V1_NODE TN_END(tn_node, output_count)

/* A segment. Nodes are in an order that may be run. View ops don't appear as nodes, only as values with view_of. */
typedef struct tn_graph {
    TN_HEAD;
    const tn_value *values;
    uint64_t value_count, value_stride;
    const tn_node *nodes;
    uint64_t node_count, node_stride;
    const tn_buffer_type_info *buffer_types;
    uint64_t buffer_type_count, buffer_type_stride;
} tn_graph;
#define TN_SIZE_GRAPH TN_END(tn_graph, buffer_type_stride)
#define TN_V1_GRAPH TN_END(tn_graph, buffer_type_stride)

/* ---- Host: what a plugin may use ---------------------------------------------------------------------------------- */

#define TN_LOG_DEBUG 0u
#define TN_LOG_INFO 1u
#define TN_LOG_WARNING 2u
#define TN_LOG_ERROR 3u

#define TN_CHANGED_ADAPTER 0u     /* memory sizes, name */
#define TN_CHANGED_DEVICE 1u      /* what it supports: an option was set */
#define TN_CHANGED_BUFFER_TYPE 2u /* layout, alignment, tensor sizes */

/* Valid from the call of query until unload has returned; between query and load only error and log may be called.
 * All functions: [any], also from the plugin's own threads until unload returns; ctx is the first argument.
 * log, error, changed and trace_span return nothing: there is no use for their failure. */
typedef struct tn_host {
    TN_HEAD;
    tn_range abi; /* minors that this host can drive */
    void *ctx;
    const char *name; /* "tenon 1.0.0", for messages */

    /* The text of the failure that the current call on this thread is about to answer. The last one counts. */
    void (*error)(void *ctx, tn_status status, const char *text);
    void (*log)(void *ctx, uint32_t level, const char *text);

    /* Host memory that counts against the host's limit; bytes 0 is legal. dealloc takes the same bytes and alignment. */
    tn_status (*alloc)(void *ctx, uint64_t bytes, uint64_t alignment, void **out);
    void (*dealloc)(void *ctx, void *ptr, uint64_t bytes, uint64_t alignment);

    /* A user's option for this plugin, as text (list rules). -> TN_NOT_FOUND */
    tn_status (*option)(void *ctx, const char *key, uint64_t *io_bytes, char *out);

    /* Whether a run should stop; *out is 0 or 1. token comes from tn_run and needs no lifetime. Wait-free: ask often. */
    tn_status (*cancelled)(void *ctx, uint64_t token, uint32_t *out);

    /* Something that schedules depend on is no longer what it was; the host drops what it had derived. The object is
     * a handle of this plugin. Not from inside a call of the host into that object. */
    void (*changed)(void *ctx, uint32_t what, const void *object);

    /* A function table by name, for experiments and extensions. -> TN_NOT_FOUND */
    tn_status (*extension)(void *ctx, const char *name, const void **out);

    /* A finished span on the timeline; nanoseconds of CLOCK_MONOTONIC (QueryPerformanceCounter on Windows). */
    void (*trace_span)(void *ctx, const char *track, const char *label, uint64_t begin_ns, uint64_t end_ns);
} tn_host;
#define TN_SIZE_HOST TN_END(tn_host, trace_span)
#define TN_V1_HOST TN_END(tn_host, trace_span)

/* ---- Registrar ------------------------------------------------------------------------------------------------------ */

#define TN_KIND_CPU 0u
#define TN_KIND_GPU 1u
#define TN_KIND_INTEGRATED 2u
#define TN_KIND_ACCELERATOR 3u

#define TN_CAP_ASYNC 1u    /* streams return before the work is done */
#define TN_CAP_SOFTWARE 2u /* a GPU API on the CPU: never chosen by default */

typedef struct tn_adapter_info {
    TN_HEAD;
    const char *name; /* "null:0"; unique in the plugin, compared without case */
    const char *description;
    const char *bus_id; /* "0000:01:00.0", or "" */
    uint32_t kind;      /* TN_KIND_ */
    uint32_t reserved;
    uint64_t capabilities; /* TN_CAP_ */
} tn_adapter_info;
#define TN_SIZE_ADAPTER_INFO TN_END(tn_adapter_info, capabilities)
#define TN_V1_ADAPTER_INFO TN_END(tn_adapter_info, capabilities)

/* Where a vendor op's decomposition writes. Valid during decompose only. */
typedef struct tn_graph_sink {
    TN_HEAD;
    void *ctx;
    tn_status (*value_add)(void *ctx, const tn_value *value, uint32_t *out_index); /* a new intermediate value */
    tn_status (*node_add)(void *ctx, const tn_node *node); /* standard ops only; in running order */
    /* a small constant, contiguous; data is copied */
    tn_status (*constant_add)(void *ctx, const tn_value *value, const void *data, uint64_t bytes, uint32_t *out_index);
} tn_graph_sink;
#define TN_SIZE_GRAPH_SINK TN_END(tn_graph_sink, constant_add)
#define TN_V1_GRAPH_SINK TN_END(tn_graph_sink, constant_add)

/* A vendor's own op. The name's first part is the vendor's; two plugins that register one name get the same id, provided
 * that version and counts agree.
 * D13 infer and decompose are pure: the same operands give the same answer, from any thread, without a device.
 * In both, node.inputs and node.outputs index graph->values; infer fills type, rank, shape of the outputs, whose places
 * are out[0], out[1], ... by stride; the host then sets contiguous strides. Decompose may be 0. */
typedef struct tn_op_info {
    TN_HEAD;
    const char *name; /* "acme.conv_winograd" */
    uint32_t version; /* of the op's contract */
    uint32_t min_inputs, max_inputs, output_count;
    uint64_t params_bytes; /* size of the params struct, head included; 0: none */
    void *ctx;             /* kept until unload returns, like the functions */
    tn_status (*infer)(void *ctx, const tn_graph *graph, const tn_node *node, uint64_t stride, tn_value *out);
    tn_status (*decompose)(void *ctx, const tn_graph *graph, const tn_node *node, const tn_graph_sink *sink);
} tn_op_info;
#define TN_SIZE_OP_INFO TN_END(tn_op_info, decompose)
#define TN_V1_OP_INFO TN_END(tn_op_info, decompose)

/* Valid until unload has returned: adapters come and go at any time. [any]; infos are copied by the host.
 * D14 An adapter or buffer type that was withdrawn stays a valid handle until unload; its devices answer TN_DEVICE_LOST
 *     and their objects can still be freed. When load fails, the host itself drops what had been added. */
typedef struct tn_registrar {
    TN_HEAD;
    void *ctx;
    tn_status (*adapter_add)(void *ctx, tn_adapter adapter,
                             const tn_adapter_info *info);        /* -> TN_BUSY: name is taken */
    tn_status (*adapter_withdraw)(void *ctx, tn_adapter adapter); /* -> TN_NOT_FOUND */
    /* For memory that needs no opened device (host, high-bandwidth). A device's own types are listed by the device. */
    tn_status (*buffer_type_add)(void *ctx, tn_buffer_type type, const tn_buffer_type_info *info);
    tn_status (*buffer_type_withdraw)(void *ctx, tn_buffer_type type);
    tn_status (*op_add)(void *ctx, const tn_op_info *info,
                        uint32_t *out_id); /* -> TN_BUSY: same name, other contract */
    tn_status (*op_withdraw)(void *ctx, uint32_t id);
} tn_registrar;
#define TN_SIZE_REGISTRAR TN_END(tn_registrar, op_withdraw)
#define TN_V1_REGISTRAR TN_END(tn_registrar, op_withdraw)

/* ---- Adapter -------------------------------------------------------------------------------------------------------- */

typedef struct tn_open {
    TN_HEAD;
    const tn_option *options; /* "cpu:threads=4" arrives parsed */
    uint64_t option_count, option_stride;
} tn_open;
#define TN_SIZE_OPEN TN_END(tn_open, option_stride)
#define TN_V1_OPEN TN_END(tn_open, option_stride)

typedef struct tn_adapter_api {
    TN_HEAD;
    /* [any] Bytes in all and free now. D15 Answers without opening a device or creating a context. */
    tn_status (*memory)(tn_adapter adapter, uint64_t *out_total, uint64_t *out_free);
    /* [any] The host owns the device. D16 An unknown option is TN_INVALID_ARGUMENT with the key in the text.
     * -> TN_DENIED, TN_BUSY */
    tn_status (*open)(tn_adapter adapter, const tn_open *params, tn_device *out);
} tn_adapter_api;
#define TN_SIZE_ADAPTER_API TN_END(tn_adapter_api, open)
#define TN_V1_ADAPTER_API TN_END(tn_adapter_api, open)

/* ---- Device --------------------------------------------------------------------------------------------------------- */

#define TN_SUPPORT_YES 1u
#define TN_SUPPORT_OFFLOAD 2u /* with YES: worth running here although its weights lie on another device */

typedef struct tn_device_api {
    TN_HEAD;
    /* [exclusive] Ends the device and its threads. D17 Returns when none of its threads runs plugin code. */
    void (*close)(tn_device device);

    /* [object] Both as text; get follows the list rules. A set that succeeds counts as tn_host.changed for the device.
     * D18 A change that comes from elsewhere (driver, heat, another process) is told by tn_host.changed.
     * -> TN_NOT_FOUND, TN_UNSUPPORTED (read only) */
    tn_status (*option_set)(tn_device device, const char *key, const char *value);
    tn_status (*option_get)(tn_device device, const char *key, uint64_t *io_bytes, char *out);

    /* [any] List of handles in order of preference, the first is the default; at least one. Owned by the device; types
     * given to the registrar may be listed too. No stride: handles aren't structs. */
    tn_status (*buffer_types)(tn_device device, uint64_t *io_count, tn_buffer_type *out);

    /* [any] out has node_count words of TN_SUPPORT_ bits. D19 A pure function of node, operands, their buffer types and
     * the device's options; names, addresses and time don't matter. D20 What it answers YES for, prepare accepts.
     * D21 An op, type or parameter that the plugin doesn't know is 0, not an error. */
    tn_status (*supports_op)(tn_device device, const tn_graph *graph, uint32_t *out);
    /* [any] Why a node isn't supported, as text (list rules). -> TN_INVALID_STATE: it is */
    tn_status (*support_reason)(tn_device device, const tn_graph *graph, uint64_t node, uint64_t *io_bytes, char *out);
    /* [any] Whether kernels can use such memory in place; *out is 0 or 1. Also asked for foreign types (D12). */
    tn_status (*supports_buffer_type)(tn_device device, const tn_buffer_type_info *type, uint32_t *out);
} tn_device_api;
#define TN_SIZE_DEVICE_API TN_END(tn_device_api, supports_buffer_type)
#define TN_V1_DEVICE_API TN_END(tn_device_api, supports_buffer_type)

/* ---- Buffer type ---------------------------------------------------------------------------------------------------- */

#define TN_USAGE_ANY 0u
#define TN_USAGE_WEIGHTS 1u
#define TN_USAGE_COMPUTE 2u

typedef struct tn_buffer_type_api {
    TN_HEAD;
    tn_status (*info)(tn_buffer_type type, tn_buffer_type_info *out); /* [any] */
    /* [any] The host owns the buffer; contents undefined. bytes 0 is legal. D22 Real failure is TN_OUT_OF_MEMORY, found
     * here and not at first touch where the system allows it. */
    tn_status (*alloc)(tn_buffer_type type, uint64_t bytes, uint32_t usage, tn_buffer *out);
    /* [any] Bytes that this tensor takes; at least its canonical bytes. D23 A pure function of type and shape. */
    tn_status (*tensor_bytes)(tn_buffer_type type, const tn_value *tensor, uint64_t *out);
    /* [any] optional. A buffer over the host's memory, which stays the host's and valid until the buffer is freed. D24 Memory that
     * is mapped read-only is never written (writable = 0). -> TN_UNSUPPORTED: alignment or kind; the host then copies */
    tn_status (*import_host)(tn_buffer_type type, void *ptr, uint64_t bytes, uint32_t writable, tn_buffer *out);
} tn_buffer_type_api;
#define TN_SIZE_BUFFER_TYPE_API TN_END(tn_buffer_type_api, import_host)
#define TN_V1_BUFFER_TYPE_API TN_END(tn_buffer_type_api, import_host)

/* ---- Buffer ---------------------------------------------------------------------------------------------------------- */

typedef struct tn_buffer_info {
    TN_HEAD;
    void *base; /* the CPU's address if the type has TN_TYPE_IS_HOST, else 0; fixed for the buffer's life */
    uint64_t bytes;
} tn_buffer_info;
#define TN_SIZE_BUFFER_INFO TN_END(tn_buffer_info, bytes)
#define TN_V1_BUFFER_INFO TN_END(tn_buffer_info, bytes)

/* Calls that move bytes are done when they return, and don't wait for streams: the host orders them by events.
 * offset and bytes count in the tensor's canonical bytes, whatever the layout (D25); blocks are never cut.
 * D26 A range beyond tensor or buffer is TN_INVALID_ARGUMENT, without a partial write. */
typedef struct tn_buffer_api {
    TN_HEAD;
    void (*destroy)(tn_buffer buffer);                        /* [exclusive] also ends its cookies */
    tn_status (*info)(tn_buffer buffer, tn_buffer_info *out); /* [any] */
    /* [object] Before a tensor's first use, for bases only: views inherit. The cookie is the plugin's and lives until
     * reset or free. optional: without it cookies are 0. */
    tn_status (*init_tensor)(tn_buffer buffer, const tn_value *tensor, uint64_t *out_cookie);
    /* [any] as long as the ranges don't overlap */
    tn_status (*set)(tn_buffer buffer, const tn_value *tensor, uint64_t offset, const void *src, uint64_t bytes);
    tn_status (*get)(tn_buffer buffer, const tn_value *tensor, uint64_t offset, void *dst, uint64_t bytes);
    tn_status (*fill)(tn_buffer buffer, const tn_value *tensor, uint64_t offset, uint64_t bytes, uint8_t byte);
    /* [any] optional. Whole tensors of equal type and shape, buffers of this plugin. -> TN_UNSUPPORTED: the host stages */
    tn_status (*copy)(tn_buffer dst, const tn_value *dst_tensor, tn_buffer src, const tn_value *src_tensor);
    tn_status (*clear)(tn_buffer buffer, uint8_t byte); /* [object] every byte, padding too */
    tn_status (*reset)(tn_buffer buffer);               /* [object] optional: forget tensors and cookies, keep memory */
    tn_status (*set_usage)(tn_buffer buffer, uint32_t usage); /* [object] optional: a hint, TN_USAGE_ */
    /* [any] optional: rows of row_bytes, steps apart, in one call; the host falls back to set and get by row. */
    tn_status (*set_2d)(tn_buffer buffer, const tn_value *tensor, uint64_t offset, uint64_t step, const void *src,
                        uint64_t src_step, uint64_t row_bytes, uint64_t rows);
    tn_status (*get_2d)(tn_buffer buffer, const tn_value *tensor, uint64_t offset, uint64_t step, void *dst,
                        uint64_t dst_step, uint64_t row_bytes, uint64_t rows);
} tn_buffer_api;
#define TN_SIZE_BUFFER_API TN_END(tn_buffer_api, get_2d)
#define TN_V1_BUFFER_API TN_END(tn_buffer_api, get_2d)

/* ---- Stream ----------------------------------------------------------------------------------------------------------- */

/* Work starts in the order in which it was queued and each piece sees all before it as done. Queuing may wait for room,
 * never for another stream's future calls.
 * D27 The first failure poisons the stream: what is queued behind it, now or later, is skipped, and events recorded there
 *     fail with the same status. Queuing on a poisoned stream still answers TN_OK: a call speaks of its own arguments.
 * D28 synchronize reports the poison once (text included, on the caller's thread), and clears it; TN_DEVICE_LOST stays.
 * D29 A stream of a lost device lets nobody wait: synchronize and events answer at once. */
typedef struct tn_stream_api {
    TN_HEAD;
    tn_status (*create)(tn_device device, tn_stream *out); /* [any] any number of streams */
    void (*destroy)(tn_stream stream);                     /* [exclusive] D30 finishes or drops what is queued, waits */
    /* [object] As in the buffer table, but queued: src, dst and buffers stay valid and unchanged until the stream has
     * passed (exception to D04); descriptors are copied. copy, optional: both buffers of this plugin. */
    tn_status (*set)(tn_stream stream, tn_buffer buffer, const tn_value *tensor, uint64_t offset, const void *src,
                     uint64_t bytes);
    tn_status (*get)(tn_stream stream, tn_buffer buffer, const tn_value *tensor, uint64_t offset, void *dst,
                     uint64_t bytes);
    tn_status (*copy)(tn_stream stream, tn_buffer dst, const tn_value *dst_tensor, tn_buffer src,
                      const tn_value *src_tensor);                   /* -> TN_UNSUPPORTED: the host stages */
    tn_status (*synchronize)(tn_stream stream, uint64_t timeout_ns); /* [object] -> the poison, TN_TIMEOUT */
} tn_stream_api;
#define TN_FOREVER UINT64_MAX
#define TN_SIZE_STREAM_API TN_END(tn_stream_api, synchronize)
#define TN_V1_STREAM_API TN_END(tn_stream_api, synchronize)

/* ---- Event ------------------------------------------------------------------------------------------------------------ */

/* Belongs to a device. Never recorded: counts as done. Each record starts a new round; wait and synchronize mean the
 * last round queued before them, and a later record doesn't change that.
 * D31 An event of another device is TN_INVALID_ARGUMENT (handles of other plugins never arrive, H02).
 * D32 What was written before an event is visible to whoever has waited for it: streams of this device, the CPU for
 *     host memory, and any later call. */
typedef struct tn_event_api {
    TN_HEAD;
    tn_status (*create)(tn_device device, tn_event *out);  /* [any] */
    void (*destroy)(tn_event event);                       /* [exclusive] */
    tn_status (*record)(tn_event event, tn_stream stream); /* [object], event and stream */
    tn_status (*wait)(tn_event event, tn_stream stream);   /* [object] for stream; a failed event poisons it */
    tn_status (*synchronize)(tn_event event,
                             uint64_t timeout_ns); /* [any] 0 asks. -> its failure (not cleared), TN_TIMEOUT */
} tn_event_api;
#define TN_SIZE_EVENT_API TN_END(tn_event_api, synchronize)
#define TN_V1_EVENT_API TN_END(tn_event_api, synchronize)

/* ---- Plan ------------------------------------------------------------------------------------------------------------- */

/* Life of a plan: prepare, read the answers, place once, bind sets, run sets; bind again or update between runs; free.
 * Groups are moments: group k starts after group k - 1 has ended, as far as anybody can see. The host plans memory so:
 * inputs and scratch of a group live to its end, outputs and scratch from its start. */
typedef struct tn_group {
    TN_HEAD;
    uint64_t scratch_bytes; /* aligned as the device's default buffer type; contents undefined at its start */
} tn_group;
#define TN_SIZE_GROUP TN_END(tn_group, scratch_bytes)
#define TN_V1_GROUP TN_END(tn_group, scratch_bytes)

/* The group that writes output may find it at the very place of input, which dies in that group. An offer: the host
 * may decline, and place shows whether it did. */
typedef struct tn_in_place {
    TN_HEAD;
    uint32_t output, input;
} tn_in_place;
#define TN_SIZE_IN_PLACE TN_END(tn_in_place, input)
#define TN_V1_IN_PLACE TN_END(tn_in_place, input)

typedef struct tn_place {
    TN_HEAD;
    uint64_t offset;  /* from the binding's base */
    uint32_t binding; /* TN_NONE: no storage */
    uint32_t reserved;
} tn_place;
#define TN_SIZE_PLACE TN_END(tn_place, reserved)
#define TN_V1_PLACE TN_END(tn_place, reserved)

typedef struct tn_placement {
    TN_HEAD;
    const tn_place *values; /* one per value; of a view its final place, base included */
    uint64_t value_count, value_stride;
    const tn_place *scratch; /* one per group */
    uint64_t scratch_count, scratch_stride;
    uint64_t binding_count; /* bindings are numbered from 0 */
} tn_placement;
#define TN_SIZE_PLACEMENT TN_END(tn_placement, binding_count)
#define TN_V1_PLACEMENT TN_END(tn_placement, binding_count)

typedef struct tn_binding {
    TN_HEAD;
    tn_buffer buffer; /* of this plugin, or 0: foreign memory, use base */
    void *base;       /* CPU address if the buffer has one */
    uint64_t bytes;
} tn_binding;
#define TN_SIZE_BINDING TN_END(tn_binding, bytes)
#define TN_V1_BINDING TN_END(tn_binding, bytes)

typedef struct tn_bind {
    TN_HEAD;
    const tn_binding *bindings; /* placement.binding_count of them */
    uint64_t binding_count, binding_stride;
    const uint64_t *cookies; /* one per value, for this set's buffers; 0: all are 0 */
    uint32_t set;            /* any number; small ones are cheap */
    uint32_t reserved;
} tn_bind;
#define TN_SIZE_BIND TN_END(tn_bind, reserved)
#define TN_V1_BIND TN_END(tn_bind, reserved)

typedef struct tn_run {
    TN_HEAD;
    uint64_t cancel_token; /* for tn_host.cancelled; 0: can't be cancelled */
    uint32_t set;
    uint32_t reserved;
} tn_run;
#define TN_SIZE_RUN TN_END(tn_run, reserved)
#define TN_V1_RUN TN_END(tn_run, reserved)

typedef struct tn_plan_api {
    TN_HEAD;
    /* [any] The host owns the plan. D33 Copies all it needs of the graph, params and names included.
     * -> TN_UNSUPPORTED: a node that supports_op denies, its index in the text */
    tn_status (*prepare)(tn_device device, const tn_graph *graph, tn_plan *out);
    void (*destroy)(tn_plan plan); /* [exclusive] */

    /* The answers; [any], optional, fixed once prepared. A plugin that fuses nothing leaves these four out: each node is a group, in
     * node order, without scratch.
     * D34 groups are listed in running order, and that order respects the graph's data flow, views and state.
     * D35 node_groups gives every node exactly one group (out: node_count words).
     * D36 unstored lists values made and used up inside one group; never an observed, input, weight or state value, nor
     *     one that views or is viewed.
     * D37 in_place names only outputs and inputs of one group, and each output once. */
    tn_status (*groups)(tn_plan plan, uint64_t *io_count, uint64_t stride, tn_group *out);
    tn_status (*node_groups)(tn_plan plan, uint64_t *io_count, uint32_t *out);
    tn_status (*unstored)(tn_plan plan, uint64_t *io_count, uint32_t *out);
    tn_status (*in_place)(tn_plan plan, uint64_t *io_count, uint64_t stride, tn_in_place *out);

    /* [exclusive] Where everything lies, relative to bindings. Once; a second call is TN_INVALID_STATE. */
    tn_status (*place)(tn_plan plan, const tn_placement *placement);
    /* [object] Real memory for a set, replacing what the set had. The buffers stay alive until the set is bound again or
     * the plan freed (exception to D04). D38 All looking up and allocating for runs happens up to here.
     * -> TN_INVALID_STATE: not placed */
    tn_status (*bind)(tn_plan plan, const tn_bind *bind);
    /* [object] for the stream; different sets of a plan may run at once on different streams. D39 Doesn't look up, hash
     * or allocate. D40 Every observed and state output is written; no byte outside the outputs, scratch and unused
     * padding of packed tensors is. D41 The token is asked between groups at least.
     * -> TN_INVALID_STATE: set isn't bound */
    tn_status (*run)(tn_plan plan, tn_stream stream, const tn_run *run);
    /* [exclusive] optional. New params for the same graph: same ops, values, shapes and flags. Groups, scratch and binds stay.
     * -> TN_UNSUPPORTED: the host prepares a new plan; this one is unchanged */
    tn_status (*update)(tn_plan plan, const tn_graph *graph);
} tn_plan_api;
#define TN_SIZE_PLAN_API TN_END(tn_plan_api, update)
#define TN_V1_PLAN_API TN_END(tn_plan_api, update)

/* ---- Plugin ----------------------------------------------------------------------------------------------------------- */

#define TN_PLUGIN_CLOSABLE \
    1u                      /* after unload the library may leave the process: no thread, no thread_local destructor */
#define TN_PLUGIN_SINGLE 2u /* one instance at a time in the process; a second load answers TN_BUSY */

/* The plugin's root: constant, valid until the library is closed, as are all tables and strings in it. */
typedef struct tn_plugin {
    TN_HEAD;
    tn_range abi; /* TN_ABI_MINOR_MIN, TN_ABI_MINOR_MAX */
    const char *name, *vendor, *version;
    uint8_t guid[16]; /* of the plugin, the same in all its versions */
    uint64_t flags;   /* TN_PLUGIN_ */

    /* [exclusive] for the plugin. minor is what the host chose; nobody has to look at it. host and registrar are valid
     * until unload has returned; the host owns the instance. D42 Adds every adapter that is there now; having none is
     * TN_OK, the log says why. D43 Fast: no context, no device memory, no compiling of kernels. */
    tn_status (*load)(const tn_host *host, const tn_registrar *registrar, uint32_t minor, tn_instance *out);
    /* [exclusive] for the instance. H04: the host counts objects and refuses before asking. D44 With an object alive it
     * answers TN_BUSY and all goes on. D45 With TN_OK all is freed, all threads are joined, the host is never called
     * again. */
    tn_status (*unload)(tn_instance instance);
    /* [any] optional. A function table by name. -> TN_NOT_FOUND */
    tn_status (*extension)(tn_instance instance, const char *name, const void **out);

    const tn_adapter_api *adapter;
    const tn_device_api *device;
    const tn_buffer_type_api *buffer_type;
    const tn_buffer_api *buffer;
    const tn_stream_api *stream;
    const tn_event_api *event;
    const tn_plan_api *plan;
} tn_plugin;
#define TN_SIZE_PLUGIN TN_END(tn_plugin, plan)
#define TN_V1_PLUGIN TN_END(tn_plugin, plan)

/* The export, and the only one (D46). [exclusive]. D47 Has no side effect: it fills *out, may use host->error and
 * host->log, keeps nothing and can be called again, by another host too. host is read as D05 says. */
typedef tn_status (*tn_plugin_query_v1_fn)(const tn_host *host, const tn_plugin **out);
TN_EXPORT tn_status tn_plugin_query_v1(const tn_host *host, const tn_plugin **out);

/* ---- Two helpers: the only code here ---------------------------------------------------------------------------------- */

/* Takes a struct of any size into zeroed storage of own_size; dst's struct_size is what was copied. */
static inline void tn_read(void *dst, uint64_t own_size, const void *src) {
    unsigned char *to = (unsigned char *)dst;
    const unsigned char *from = (const unsigned char *)src;
    uint64_t have = *(const uint64_t *)src, n = have < own_size ? have : own_size, i;
    for (i = 0; i < own_size; ++i) to[i] = i < n ? from[i] : (unsigned char)0;
    *(uint64_t *)dst = n;
}

/* Fills an output struct from the plugin's own, head excepted, up to the smaller size. */
static inline void tn_write(void *dst, const void *src) {
    unsigned char *to = (unsigned char *)dst;
    const unsigned char *from = (const unsigned char *)src;
    uint64_t room = *(const uint64_t *)dst, have = *(const uint64_t *)src, n = room < have ? room : have;
    uint64_t i = sizeof(uint64_t) + sizeof(const void *);
    for (; i < n; ++i) to[i] = from[i];
}

#ifdef __cplusplus
}
#endif
#endif
