// The functions of tn_host: thin, never throwing, callable from any thread of a plugin.
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "base/plugin_call.h"
#include "base/text.h"
#include "registry/plugin_context.h"

namespace tenon {
namespace {

PluginContext &self(void *ctx) {
    return *static_cast<PluginContext *>(ctx);
}

void host_error(void *, tn_status, const char *text) {
    set_plugin_text(text);
}

void host_log(void *ctx, uint32_t level, const char *text) {
    if (!text) return;
    try {
        LogLevel known = level > TN_LOG_ERROR ? LogLevel::error : LogLevel(level);
        self(ctx).services().logger.log(known, "{}: {}", self(ctx).name(), printable(text));
    } catch (...) {
        // No memory for a log line: it is lost, as the ABI allows.
    }
}

bool power_of_two(uint64_t n) {
    return n && (n & (n - 1)) == 0;
}

tn_status host_alloc(void *ctx, uint64_t bytes, uint64_t alignment, void **out) {
    if (!out || !power_of_two(alignment)) return TN_INVALID_ARGUMENT;
    MemoryAccount &account = self(ctx).services().memory;
    if (!account.take(bytes)) return TN_OUT_OF_MEMORY;
    void *memory = nullptr;
    const size_t least = sizeof(void *);
    if (posix_memalign(&memory, alignment < least ? least : alignment, bytes ? bytes : 1) != 0) {
        account.give_back(bytes);
        return TN_OUT_OF_MEMORY;
    }
    self(ctx).memory().take(bytes);
    *out = memory;
    return TN_OK;
}

void host_dealloc(void *ctx, void *ptr, uint64_t bytes, uint64_t) {
    if (!ptr) return;
    std::free(ptr);
    self(ctx).memory().give_back(bytes);
    self(ctx).services().memory.give_back(bytes);
}

tn_status host_option(void *ctx, const char *key, uint64_t *io_bytes, char *out) {
    if (!key || !io_bytes) return TN_INVALID_ARGUMENT;
    try {
        const auto &options = self(ctx).services().options;
        auto found = options.find(self(ctx).name() + "." + key);
        if (found == options.end()) return TN_NOT_FOUND;
        const uint64_t room = *io_bytes, need = found->second.size() + 1;
        *io_bytes = need;
        if (!out) return TN_OK;
        if (room < need) return TN_TOO_SMALL;
        std::memcpy(out, found->second.c_str(), need);
        return TN_OK;
    } catch (...) {
        return TN_OUT_OF_MEMORY;
    }
}

tn_status host_cancelled(void *ctx, uint64_t token, uint32_t *out) {
    if (!out) return TN_INVALID_ARGUMENT;
    *out = self(ctx).services().cancel.raised(token) ? 1 : 0;
    return TN_OK;
}

void host_changed(void *ctx, uint32_t what, const void *object) {
    self(ctx).changed(what, object);
}

// No experiments and extensions in this host.
tn_status host_extension(void *, const char *, const void **) {
    return TN_NOT_FOUND;
}

// Nobody has asked for a timeline.
void host_trace_span(void *, const char *, const char *, uint64_t, uint64_t) {}

}  // namespace

tn_host make_host_table(PluginContext *context) {
    tn_host table{};
    table.struct_size = TN_SIZE_HOST;
    table.abi = {TN_ABI_MINOR_MIN, TN_ABI_MINOR_MAX};
    table.ctx = context;
    table.name = "tenon " TENON_VERSION;
    table.error = host_error;
    table.log = host_log;
    table.alloc = host_alloc;
    table.dealloc = host_dealloc;
    table.option = host_option;
    table.cancelled = host_cancelled;
    table.changed = host_changed;
    table.extension = host_extension;
    table.trace_span = host_trace_span;
    return table;
}

}  // namespace tenon
