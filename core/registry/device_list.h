// The text by which users name devices: `NAME[:INDEX][:K=V]...`, comma-separated, where an item K=V continues the
// device before it. "vulkan:1,cpu:threads=4,isa=avx2" is two devices.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/status.h"

namespace tenon {

struct DeviceSpec {
    std::string base;                                          // small letters
    std::optional<uint32_t> index;                             // none: the adapter without index, or 0
    std::vector<std::pair<std::string, std::string>> options;  // in the order given; no key twice
    /// "vulkan:1", for messages and for comparing.
    std::string name() const;
    bool operator==(const DeviceSpec &) const = default;
};

/// invalid_argument names the item and what is wrong with it: an empty item, an option before any device, a part that
/// is neither index nor K=V, an option given twice, the same device with the same options twice. Spaces around items
/// and their parts don't count. An empty (or all-space) list is an empty answer. Pure; any thread.
Result<std::vector<DeviceSpec>> parse_device_list(std::string_view list);

}  // namespace tenon
