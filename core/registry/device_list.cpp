#include "registry/device_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace tenon {
namespace {

std::string_view trimmed(std::string_view text) {
    size_t begin = text.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

// Takes the text up to the separator off `rest`; nothing once `rest` is used up (which needs `more` to be told apart
// from an empty last piece).
std::optional<std::string_view> next_piece(std::string_view &rest, bool &more, char separator) {
    if (!more) return std::nullopt;
    size_t at = rest.find(separator);
    more = at != std::string_view::npos;
    std::string_view piece = rest.substr(0, at);
    rest.remove_prefix(more ? at + 1 : rest.size());
    return trimmed(piece);
}

Status wrong(std::string_view item, std::string_view what) {
    return Status::invalid_argument(fmt::format("device list, at '{}': {}", printable(item, 200), what));
}

Status add_option(DeviceSpec &device, std::string_view item, std::string_view part) {
    size_t equals = part.find('=');
    std::string_view key = trimmed(part.substr(0, equals)), value = trimmed(part.substr(equals + 1));
    if (key.empty()) return wrong(item, "an option needs a name before '='");
    for (const auto &[known, ignored] : device.options)
        if (known == key) return wrong(item, fmt::format("the option '{}' of {} is given twice", key, device.name()));
    device.options.emplace_back(key, value);
    return {};
}

// The parts behind the first one.
Status add_parts(DeviceSpec &device, std::string_view item, std::string_view rest, bool more) {
    for (bool first = true; auto part = next_piece(rest, more, ':'); first = false) {
        if (part->find('=') != std::string_view::npos) {
            TENON_TRY(add_option(device, item, *part));
            continue;
        }
        uint32_t index = 0;
        auto [end, error] = std::from_chars(part->data(), part->data() + part->size(), index);
        bool number = !part->empty() && error == std::errc() && end == part->data() + part->size();
        if (!first || !number || !device.options.empty()) {
            return wrong(item,
                         fmt::format("'{}' is neither the device's number nor an option K=V", printable(*part, 100)));
        }
        device.index = index;
    }
    return {};
}

// "cpu" and "cpu:0" are one device.
bool same(const DeviceSpec &a, const DeviceSpec &b) {
    return a.base == b.base && a.index.value_or(0) == b.index.value_or(0) && a.options == b.options;
}

}  // namespace

std::string DeviceSpec::name() const {
    return index ? fmt::format("{}:{}", base, *index) : base;
}

Result<std::vector<DeviceSpec>> parse_device_list(std::string_view list) {
    std::vector<DeviceSpec> out;
    if (trimmed(list).empty()) return out;
    bool more_items = true;
    for (std::string_view items = list; auto item = next_piece(items, more_items, ',');) {
        if (item->empty()) return wrong(list, "an item between commas is empty");
        std::string_view parts = *item;
        bool more = true;
        std::string_view head = *next_piece(parts, more, ':');
        if (head.find('=') != std::string_view::npos) {
            if (out.empty()) return wrong(*item, "an option needs a device before it, as in 'acme:0:threads=4'");
            TENON_TRY(add_option(out.back(), *item, head));
        } else {
            if (head.empty()) return wrong(*item, "the device's name is missing");
            out.push_back({ascii_lower(head), std::nullopt, {}});
        }
        TENON_TRY(add_parts(out.back(), *item, parts, more));
    }
    for (size_t i = 0; i < out.size(); ++i)
        for (size_t j = 0; j < i; ++j)
            if (same(out[i], out[j]))
                return wrong(list, fmt::format("the device {} is named twice with the same options", out[i].name()));
    return out;
}

}  // namespace tenon
