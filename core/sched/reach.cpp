#include "sched/reach.h"

#include <algorithm>

namespace tenon {

void BoundTypes::bind(ValueId base, const BufferType &type) {
    const auto found = std::ranges::find(types, type);
    of_value[base] = uint32_t(found - types.begin());
    if (found == types.end()) types.push_back(type);
}

Result<bool> TypeSupport::supports(const std::shared_ptr<Device> &device, const BufferType &type) {
    for (const Row &row : rows_)
        if (row.device == device.get() && row.type == type) return row.answer;
    TENON_ASSIGN(const bool answer, device->supports(type));
    rows_.push_back({device.get(), type, answer});
    return answer;
}

Result<MemoryReach> MemoryReach::ask(const DeviceSet &devices, const BoundTypes &bound, TypeSupport &types) {
    MemoryReach reach;
    reach.devices = devices.count();
    reach.types = uint32_t(devices.types.size() + bound.types.size());
    reach.bound = bound.of_value;
    for (uint32_t &type : reach.bound)
        if (type != k_no_value) type += reach.devices;
    reach.usable.resize(size_t(reach.devices) * reach.types);
    reach.first.assign(reach.types, k_no_value);
    for (const BufferType &type : devices.types)
        reach.same.push_back(uint32_t(std::ranges::find(devices.types, type) - devices.types.begin()));
    for (uint32_t d = 0; d < reach.devices; ++d)
        for (uint32_t t = 0; t < reach.types; ++t) {
            const BufferType &type = t < reach.devices ? devices.types[t] : bound.types[t - reach.devices];
            TENON_ASSIGN(const bool usable, types.supports(devices.list[d], type));
            reach.usable[size_t(d) * reach.types + t] = usable || t == d;
            if ((usable || t == d) && reach.first[t] == k_no_value) reach.first[t] = d;
        }
    return reach;
}

}  // namespace tenon
