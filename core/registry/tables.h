// A plugin's tables as the host uses them: copies of the host's own size, in which no entry is null. What a plugin left
// out, or is too old to know, is a stub that answers TN_UNIMPLEMENTED; what it must have and hasn't is told by name.
#pragma once

#include "tenon/abi.h"
#include "tenon/status.h"

namespace tenon {

struct PluginTables {
    tn_plugin root{};
    tn_adapter_api adapter{};
    tn_device_api device{};
    tn_buffer_type_api buffer_type{};
    tn_buffer_api buffer{};
    tn_stream_api stream{};
    tn_event_api event{};
    tn_plan_api plan{};
};

/// Reads what a plugin's query gave. `root` is null or points to a table of any size.
/// unsupported: no common minor; invalid_argument: a table or a required entry is missing. The library's name isn't in
/// the message. On success minor is the highest that `host` and the plugin both serve.
Status read_tables(const tn_plugin *root, tn_range host, PluginTables &out, uint32_t &minor);

}  // namespace tenon
