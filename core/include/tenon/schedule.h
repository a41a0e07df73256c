// The scheduler's result: which node runs on which device and why, which segments and copies that makes, and how many
// bytes each device needs. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/device.h"
#include "tenon/graph.h"
#include "tenon/status.h"

namespace tenon {

/// Why a node or value is where it is: the codes of the reference placement (DESIGN section 3).
enum class Reason : uint8_t { none, usr, dst, vsrc_bound, inp, off, wgt, sup, best, upg, vsrc, cur, cpy };
/// "usr", "1.dst", "1.vsrc", "1.inp", "1.off", "1.wgt", "2.sup", "3.best", "3.upg", "4.vsrc", "4.cur", "4.cpy".
std::string_view reason_code(Reason reason) noexcept;

struct Assignment {
    uint32_t device = k_no_value;  // index into the scheduler's device list
    Reason reason = Reason::none;
};

/// Nodes whose names contain a match of `pattern` (Perl-compatible regular expression, searched) go to `device`.
struct Pin {
    std::string pattern;
    std::string device;  // name as in the device list, without regard to case
    /// Parses "REGEX=DEVICE", split at the last "=".
    static Result<Pin> parse(std::string_view text);
};

/// A run of consecutive nodes on one device.
struct Segment {
    uint32_t device = 0;
    std::vector<NodeId> nodes;     // in running order
    std::vector<uint32_t> copies;  // indices into Schedule::copies that must be there before it starts
};

/// A value carried to a device that doesn't support the memory it lies in. Made once, shared by all later readers
/// there.
struct Copy {
    ValueId value = k_no_value;  // a base
    uint32_t from = 0, to = 0;   // devices
    uint64_t bytes = 0;
};

struct DeviceMemory {
    uint64_t arena_bytes = 0;              // activations and scratch, shared by lifetimes
    uint64_t arena_lower_bound_bytes = 0;  // the largest sum of live bytes: no plan can need less
    uint64_t io_bytes = 0;                 // graph inputs, outputs and constants, which are kept apart
};

class Schedule {
public:
    const Graph &graph() const { return graph_; }
    std::span<const std::shared_ptr<Device>> devices() const { return devices_; }
    /// One per node.
    std::span<const Assignment> nodes() const { return nodes_; }
    /// One per value: the device in whose memory it lies first.
    std::span<const Assignment> values() const { return values_; }
    std::span<const Segment> segments() const { return segments_; }
    std::span<const Copy> copies() const { return copies_; }
    /// One per device.
    std::span<const DeviceMemory> memory() const { return memory_; }
    /// A line a node with device and code, segments with their copies, memory.
    std::string to_text() const;

private:
    friend class Compiler;
    Graph graph_;
    std::vector<std::shared_ptr<Device>> devices_;
    std::vector<Assignment> nodes_, values_;
    std::vector<Segment> segments_;
    std::vector<Copy> copies_;
    std::vector<DeviceMemory> memory_;
};

}  // namespace tenon
