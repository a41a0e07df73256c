// What the forms of a schedule (text, DOT, JSON) have in common.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tenon/schedule.h"

namespace tenon {

/// Bytes of what lies on a device for good, canonical.
struct HeldBytes {
    uint64_t weights = 0, states = 0;
};

/// One per device.
std::vector<HeldBytes> held_bytes(const Schedule &schedule);

/// What a name must not do to the line that it stands in: control characters, and what isn't UTF-8, become '?'.
std::string printable(std::string_view name);

/// A device's name, "-" for none.
std::string device_name(const Schedule &schedule, uint32_t device);

}  // namespace tenon
