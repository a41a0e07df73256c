// What a plugin may use of the host: log, memory, options, cancellation; and where it registers what it has.
#ifndef TENON_PLUGIN_HOST_HPP
#define TENON_PLUGIN_HOST_HPP

#include <charconv>
#include <optional>

#include "tenon/plugin/graph_read.hpp"

namespace tenon::plugin {

/// The host's table, as the instance keeps it. Cheap to copy; valid until unload has returned. [any] for all.
/// Hold no lock of your own across a call (D10).
class HostRef {
public:
    explicit HostRef(const tn_host *table) noexcept : t_(table) {}

    std::string_view name() const noexcept { return t_->name != nullptr ? t_->name : ""; }
    void error(tn_status status, const char *text) const noexcept { t_->error(t_->ctx, status, text); }
    void log(uint32_t level, const std::string &text) const { t_->log(t_->ctx, level, text.c_str()); }
    /// Host memory that counts against the host's limit. Throws TN_OUT_OF_MEMORY. May be null for 0 bytes.
    void *alloc(uint64_t bytes, uint64_t alignment) const {
        void *memory = nullptr;
        const tn_status status = t_->alloc(t_->ctx, bytes, alignment, &memory);
        if (status != TN_OK) fail(detail::listed(status), "the host has no memory for ", bytes, " bytes");
        return memory;
    }
    void dealloc(void *memory, uint64_t bytes, uint64_t alignment) const noexcept {
        t_->dealloc(t_->ctx, memory, bytes, alignment);
    }
    /// A user's option for this plugin; none if it isn't set.
    std::optional<std::string> option(const char *key) const {
        for (uint64_t bytes = 0;;) {  // the text may change between the two calls
            tn_status status = t_->option(t_->ctx, key, &bytes, nullptr);
            if (status == TN_NOT_FOUND) return std::nullopt;
            if (status != TN_OK) fail(detail::listed(status), "the host can't tell option '", key, "'");
            std::string text(bytes, '\0');
            status = t_->option(t_->ctx, key, &bytes, text.data());
            if (status == TN_TOO_SMALL) continue;
            if (status != TN_OK) fail(detail::listed(status), "the host can't tell option '", key, "'");
            text.resize(bytes == 0 ? 0 : bytes - 1);
            return text;
        }
    }
    /// Whether a run should stop. Wait-free.
    bool cancelled(uint64_t token) const noexcept {
        uint32_t stop = 0;
        return token != 0 && t_->cancelled(t_->ctx, token, &stop) == TN_OK && stop != 0;
    }
    /// TN_CHANGED_; object is the handle of an adapter, device or buffer type. Not from inside a call into that object.
    void changed(uint32_t what, const void *object) const noexcept { t_->changed(t_->ctx, what, object); }
    /// A function table by name, 0 if the host has none.
    const void *extension(const char *name) const noexcept {
        const void *table = nullptr;
        return t_->extension(t_->ctx, name, &table) == TN_OK ? table : nullptr;
    }
    void trace_span(const char *track, const char *label, uint64_t begin_ns, uint64_t end_ns) const noexcept {
        t_->trace_span(t_->ctx, track, label, begin_ns, end_ns);
    }

private:
    const tn_host *t_;
};

/// A whole number in a range. Throws TN_INVALID_ARGUMENT with the key.
inline int64_t parse_number(std::string_view key, std::string_view text, int64_t min, int64_t max) {
    int64_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size() || number < min || number > max) {
        fail(TN_INVALID_ARGUMENT, "option '", key, "': '", text, "' isn't a whole number from ", min, " to ", max);
    }
    return number;
}

/// The options of an open. A key that nobody asked for makes the open fail afterwards, with the key in the text (D16).
/// Of equal keys the last one counts.
class Options {
public:
    explicit Options(const SpanView<tn_option> &from) {
        for (uint64_t i = 0; i < from.size(); ++i) {
            const tn_option o = from[i];
            items_.push_back({need(o.key, "an option's key"), need(o.value, "an option's value"), false});
        }
    }

    std::optional<std::string> text(std::string_view key) {
        std::optional<std::string> found;
        for (Item &item : items_) {
            if (item.key == key) item.used = true, found = item.value;
        }
        return found;
    }
    int64_t number(std::string_view key, int64_t otherwise, int64_t min, int64_t max) {
        const auto found = text(key);
        return found ? parse_number(key, *found, min, max) : otherwise;
    }
    /// 0 or 1.
    bool flag(std::string_view key, bool otherwise) { return number(key, otherwise ? 1 : 0, 0, 1) != 0; }

    void check_all_used() const {
        for (const Item &item : items_) {
            if (!item.used) fail(TN_INVALID_ARGUMENT, "unknown option '", item.key, "'");
        }
    }

private:
    struct Item {
        std::string key, value;
        bool used;
    };
    std::vector<Item> items_;
};

struct AdapterInfo {
    std::string name;  // "null:0"
    std::string description;
    std::string bus_id = {};
    uint32_t kind = TN_KIND_CPU;           // TN_KIND_
    uint64_t capabilities = TN_CAP_ASYNC;  // TN_CAP_
};

/// The answer about one node: the reason for a "no" stands beside the check that found it.
struct Support {
    uint32_t bits = 0;  // TN_SUPPORT_
    std::string reason;

    static Support yes() { return {TN_SUPPORT_YES, {}}; }
    /// Yes, and worth moving here although its weights lie on another device.
    static Support offload() { return {TN_SUPPORT_YES | TN_SUPPORT_OFFLOAD, {}}; }
    template <class... Parts>
    static Support no(const Parts &...parts) {
        return {0, join(parts...)};
    }
    explicit operator bool() const noexcept { return bits != 0; }
};

}  // namespace tenon::plugin
#endif
