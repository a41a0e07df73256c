// Kinds of memory: in which a graph's values lie, and which device can use which in place.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tenon/device.h"
#include "tenon/graph.h"

namespace tenon {

using DeviceList = std::vector<std::shared_ptr<Device>>;

/// The devices of a schedule in order of priority, the last one the fallback, each with the memory that it computes in.
struct DeviceSet {
    DeviceList list;
    std::vector<BufferType> types;  // one per device
    uint32_t count() const { return uint32_t(list.size()); }
};

/// The memory in which weights and states lie.
struct BoundTypes {
    std::vector<BufferType> types;   // each once
    LargeVector<uint32_t> of_value;  // per value: index into types for a bound base, else k_no_value
    explicit BoundTypes(size_t values = 0) : of_value(values, k_no_value) {}
    void bind(ValueId base, const BufferType &type);
};

/// Whether devices can use memory of a type in place; asked once for each pair.
class TypeSupport {
public:
    Result<bool> supports(const std::shared_ptr<Device> &device, const BufferType &type);

private:
    struct Row {
        const Device *device;
        BufferType type;
        bool answer;
    };
    std::vector<Row> rows_;
};

/// Types are numbered: first those that the devices compute in, then those of bound values.
struct MemoryReach {
    uint32_t devices = 0, types = 0;
    std::vector<uint8_t> usable;  // [device][type]
    LargeVector<uint32_t> bound;  // per value: the type of a bound base, else k_no_value
    std::vector<uint32_t> first;  // per type: the first device that can use it; k_no_value where none can
    std::vector<uint32_t> same;   // per device: the first device that computes in the same type

    bool reaches(uint32_t device, uint32_t type) const { return usable[size_t(device) * types + type]; }
    bool is_bound(ValueId base) const { return bound[base] != k_no_value; }

    static Result<MemoryReach> ask(const DeviceSet &devices, const BoundTypes &bound, TypeSupport &types);
};

}  // namespace tenon
