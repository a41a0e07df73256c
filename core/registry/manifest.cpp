#include "registry/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "registry/cpu_features.h"
#include "tenon/abi.h"

namespace tenon {
namespace {

using nlohmann::json;

constexpr std::string_view k_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

// Reads keys of one object, keeps the first failure, and knows which keys were asked for.
class Reader {
public:
    Reader(const json &object, std::string where) : object_(object), where_(std::move(where)) {}

    void text(const char *key, std::string &out, size_t max_bytes) {
        const json *value = find(key);
        if (!value) return;
        if (!value->is_string()) return wrong(key, "a string");
        out = value->get<std::string>();
        if (out.size() > max_bytes)
            return fail(fmt::format("\"{}{}\" is longer than {} bytes", where_, key, max_bytes));
        if (printable(out, max_bytes) != out) fail(fmt::format("\"{}{}\" holds control characters", where_, key));
    }
    void optional_text(const char *key, std::string &out, size_t max_bytes) {
        asked_.insert(key);
        if (object_.contains(key)) text(key, out, max_bytes);
    }
    void number(const char *key, uint32_t &out) {
        const json *value = find(key);
        if (!value) return;
        if (!value->is_number_unsigned() || value->get<uint64_t>() > std::numeric_limits<uint32_t>::max()) {
            return wrong(key, "a whole number from 0 to 4294967295");
        }
        out = value->get<uint32_t>();
    }
    void texts(const char *key, std::vector<std::string> &out, size_t max_count) {
        const json *value = find(key);
        if (!value) return;
        bool strings = value->is_array() && std::ranges::all_of(*value, [](const json &e) { return e.is_string(); });
        if (!strings) return wrong(key, "a list of strings");
        if (value->size() > max_count)
            return fail(fmt::format("\"{}{}\" has more than {} entries", where_, key, max_count));
        out = value->get<std::vector<std::string>>();
    }
    const json *object(const char *key) {
        const json *value = find(key);
        if (value && !value->is_object()) wrong(key, "an object");
        return status_.ok() ? value : nullptr;
    }
    void fail(std::string message) {
        if (status_.ok()) status_ = Status::invalid_argument(std::move(message));
    }
    /// The first failure, an unknown key included.
    Status done() {
        for (const auto &[key, value] : object_.items())
            if (!asked_.contains(key)) fail(fmt::format("unknown key \"{}{}\"", where_, printable(key, 100)));
        return std::move(status_);
    }

private:
    const json *find(const char *key) {
        asked_.insert(key);
        auto it = object_.find(key);
        if (it != object_.end()) return status_.ok() ? &*it : nullptr;
        fail(fmt::format("\"{}{}\" is missing", where_, key));
        return nullptr;
    }
    void wrong(const char *key, const char *kind) { fail(fmt::format("\"{}{}\" isn't {}", where_, key, kind)); }

    const json &object_;
    std::string where_;
    std::set<std::string, std::less<>> asked_;
    Status status_;
};

bool made_of(std::string_view text, std::string_view more) {
    return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [&](char c) {
        return k_letters.find(c) != k_letters.npos || more.find(c) != more.npos;
    });
}

// The JSON text as an object in which no key stands twice (the JSON library keeps the last one silently).
Status parse_object(std::string_view text, json &out) {
    std::vector<std::set<std::string>> open;
    std::string twice;
    auto watch = [&](int, json::parse_event_t event, json &value) {
        if (event == json::parse_event_t::object_start) open.emplace_back();
        if (event == json::parse_event_t::object_end) open.pop_back();
        if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second) {
            twice = value.get<std::string>();
        }
        return true;
    };
    try {
        out = json::parse(text, watch);
    } catch (const json::parse_error &error) {
        return Status::invalid_argument(
            fmt::format("not JSON at byte {}: {}", error.byte, printable(error.what(), 300)));
    } catch (const std::exception &error) {
        return Status::invalid_argument(fmt::format("not JSON: {}", printable(error.what(), 300)));
    }
    if (!twice.empty())
        return Status::invalid_argument(fmt::format("the key \"{}\" stands twice", printable(twice, 100)));
    if (!out.is_object()) return Status::invalid_argument("the JSON isn't an object");
    return {};
}

Status check_names(Manifest &m) {
    if (!made_of(m.name, "_-")) {
        return Status::invalid_argument("\"name\" isn't 1 to 64 of letters, digits, '_' and '-'");
    }
    if (m.file.empty() || m.file.size() > 255 || m.file == "." || m.file == ".." ||
        m.file.find('/') != std::string::npos) {
        return Status::invalid_argument(fmt::format("\"file\" isn't a plain file name: '{}'", m.file));
    }
    if (m.devices.empty())
        return Status::invalid_argument("\"devices\" is empty: no device list could name this plugin");
    for (std::string &device : m.devices) {
        auto parts = parse_device_name(device);
        if (!parts || !made_of(parts->base, "_-.")) {
            return Status::invalid_argument(
                fmt::format("\"devices\": '{}' isn't 1 to 64 of letters, digits, '_', '-' and '.', with or without ':' "
                            "and a number",
                            printable(device, 100)));
        }
        device = ascii_lower(device);
    }
    for (const std::string &feature : m.cpu_features) {
        if (!made_of(feature, "_-.")) {
            return Status::invalid_argument(
                fmt::format("\"cpu_features\": '{}' isn't a feature's name", printable(feature, 100)));
        }
    }
    return {};
}

}  // namespace

std::string_view build_sanitizer() noexcept {
    return TENON_SANITIZE;
}

std::optional<DeviceName> parse_device_name(std::string_view text) {
    DeviceName out;
    size_t colon = text.find(':');
    out.base = ascii_lower(text.substr(0, colon));
    if (out.base.empty()) return std::nullopt;
    if (colon == std::string_view::npos) return out;
    std::string_view digits = text.substr(colon + 1);
    uint32_t index = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    out.index = index;
    return out;
}

bool covers(const std::vector<std::string> &listed, const DeviceName &device) {
    return std::ranges::any_of(listed, [&](const std::string &text) {
        auto entry = parse_device_name(text);
        return entry && entry->base == device.base && (!entry->index || *entry->index == device.index.value_or(0));
    });
}

Status parse_manifest(std::string_view text, Manifest &out) {
    if (text.size() > k_max_manifest_bytes) {
        return Status::invalid_argument(fmt::format("longer than {} bytes", k_max_manifest_bytes));
    }
    json root;
    TENON_TRY(parse_object(text, root));
    uint32_t version = 0;
    Manifest m;
    Reader reader(root, "");
    reader.number("manifest", version);
    if (version > 1)
        return Status::unsupported(fmt::format("the manifest is of version {}, this host reads version 1", version));
    if (version == 0) reader.fail("\"manifest\" isn't 1");
    reader.text("name", m.name, 64);
    reader.text("vendor", m.vendor, 200);
    reader.text("version", m.version, 100);
    reader.optional_text("description", m.description, 1000);
    if (const json *abi = reader.object("abi")) {
        Reader range(*abi, "abi.");
        range.number("major", m.abi_major);
        range.number("min", m.abi_min);
        range.number("max", m.abi_max);
        if (m.abi_min > m.abi_max) range.fail("\"abi.min\" is over \"abi.max\"");
        TENON_TRY(range.done());
    }
    reader.text("arch", m.arch, 64);
    reader.texts("cpu_features", m.cpu_features, 256);
    reader.text("file", m.file, 255);
    reader.texts("devices", m.devices, 256);
    reader.text("sanitizer", m.sanitizer, 100);
    TENON_TRY(reader.done());
    TENON_TRY(check_names(m));
    out = std::move(m);
    return {};
}

Status check_manifest(const Manifest &m) {
    const tn_range host{TN_ABI_MINOR_MIN, TN_ABI_MINOR_MAX};
    if (m.abi_major != 1 || std::max(m.abi_min, host.min) > std::min(m.abi_max, host.max)) {
        return Status::unsupported(fmt::format("it speaks ABI {0}.{1} to {0}.{2}, this host 1.{3} to 1.{4}",
                                               m.abi_major, m.abi_min, m.abi_max, host.min, host.max));
    }
    if (m.arch != host_architecture()) {
        return Status::unsupported(fmt::format("it is built for {}, this host for {}", m.arch, host_architecture()));
    }
    if (m.sanitizer != build_sanitizer()) {
        auto name = [](std::string_view kind) {
            return kind.empty() ? std::string("no sanitizer") : fmt::format("'{}'", kind);
        };
        return Status::unsupported(fmt::format("it is built with {}, this host with {}: the two can't be mixed",
                                               name(m.sanitizer), name(build_sanitizer())));
    }
    for (const std::string &feature : m.cpu_features) {
        if (!host_cpu_features().contains(normalised_feature(feature))) {
            return Status::unsupported(fmt::format("it needs the CPU feature '{}', which this machine lacks", feature));
        }
    }
    return {};
}

}  // namespace tenon
