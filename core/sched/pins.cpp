// Pins: what a user says about where nodes run.
#include <fmt/format.h>

#include <algorithm>

#include "base/no_throw.h"
#include "base/pattern.h"
#include "registry/manifest.h"
#include "sched/place.h"

namespace tenon {
namespace {

/// "cpu" and "cpu:0" are one device, in letters of any size.
bool same_device(std::string_view a, std::string_view b) {
    const auto first = parse_device_name(a), second = parse_device_name(b);
    return first && second && first->base == second->base && first->index.value_or(0) == second->index.value_or(0);
}

}  // namespace

Result<Pin> Pin::parse(std::string_view text) {
    return no_throw([&]() -> Result<Pin> {
        const size_t at = text.rfind('=');
        if (at == std::string_view::npos || at == 0 || at + 1 == text.size())
            return Status::invalid_argument(fmt::format("pin '{}' isn't REGEX=DEVICE", text));
        Pin pin{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
        if (auto pattern = Pattern::compile(pin.pattern); !pattern.ok()) return std::move(pattern).status().in("pin");
        return pin;
    });
}

Result<std::vector<uint32_t>> resolve_pins(const Graph &graph, const DeviceList &devices, std::span<const Pin> pins) {
    std::vector<uint32_t> pinned;
    if (!pins.empty()) pinned.assign(graph.nodes().size(), k_no_value);
    for (const Pin &pin : pins) {
        const auto device =
            std::ranges::find_if(devices, [&](const auto &d) { return same_device(d->name(), pin.device); });
        if (device == devices.end())
            return Status::not_found(fmt::format("pin '{}={}': no such device in the list", pin.pattern, pin.device));
        TENON_ASSIGN(const Pattern pattern, Pattern::compile(pin.pattern));
        for (NodeId node = 0; node < pinned.size(); ++node) {
            if (pinned[node] != k_no_value) continue;
            TENON_ASSIGN(const bool found, pattern.found_in(graph.nodes()[node].name));
            if (found) pinned[node] = uint32_t(device - devices.begin());
        }
    }
    return pinned;
}

}  // namespace tenon
