/* The C half of two translation units that both include the headers; headers_test.cpp is the other. */
#include "tenon/abi.h"
#include "tenon/ops.h"

uint64_t abi_sizes_in_c(uint64_t *out, uint64_t room);

uint64_t abi_sizes_in_c(uint64_t *out, uint64_t room) {
    const uint64_t sizes[] = {
        TN_SIZE_EXT,         TN_SIZE_OPTION,     TN_SIZE_BUFFER_TYPE_INFO, TN_SIZE_VALUE,       TN_SIZE_NODE,
        TN_SIZE_GRAPH,       TN_SIZE_HOST,       TN_SIZE_ADAPTER_INFO,     TN_SIZE_GRAPH_SINK,  TN_SIZE_OP_INFO,
        TN_SIZE_REGISTRAR,   TN_SIZE_OPEN,       TN_SIZE_ADAPTER_API,      TN_SIZE_DEVICE_API,  TN_SIZE_BUFFER_TYPE_API,
        TN_SIZE_BUFFER_INFO, TN_SIZE_BUFFER_API, TN_SIZE_STREAM_API,       TN_SIZE_EVENT_API,   TN_SIZE_GROUP,
        TN_SIZE_IN_PLACE,    TN_SIZE_PLACE,      TN_SIZE_PLACEMENT,        TN_SIZE_BINDING,     TN_SIZE_BIND,
        TN_SIZE_RUN,         TN_SIZE_PLAN_API,   TN_SIZE_PLUGIN,           TN_SIZE_PARAMS_ROPE, TN_SIZE_PARAMS_ROUTE,
        sizeof(tn_range)};
    const uint64_t count = sizeof sizes / sizeof sizes[0];
    for (uint64_t i = 0; i < count && i < room; ++i) out[i] = sizes[i];
    return count;
}
