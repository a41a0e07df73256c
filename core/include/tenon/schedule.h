// The scheduler's result: which node runs on which device and why, which segments and copies that makes, and how many
// bytes each device needs. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <ranges>
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

/// Consecutive nodes on one device, prepared and run as one. Indices are ranges [first, end).
struct Segment {
    uint32_t device = 0;
    NodeId first_node = 0, end_node = 0;
    uint32_t first_copy = 0, end_copy = 0;  // of Schedule::copies: made when it starts, for it and for later ones
    uint32_t first_wait = 0, end_wait = 0;  // of Schedule::waits: segments of other devices that end before it starts
    auto nodes() const { return std::views::iota(first_node, end_node); }
    auto copies() const { return std::views::iota(first_copy, end_copy); }
};

/// A value carried to a device that doesn't support the memory it lies in. Made once, shared by all later readers
/// there.
struct Copy {
    ValueId value = k_no_value;  // a base
    uint32_t from = 0, to = 0;   // devices
    uint64_t bytes = 0;
};

/// What lies in one kind of memory of a device, placed by lifetimes.
struct MemoryArea {
    uint64_t bytes = 0;
    uint64_t lower_bound_bytes = 0;  // the largest sum of bytes that live at once: no plan can need less
    uint32_t chunks = 0;             // buffers: more than one where the buffer type limits their size
};

/// What a schedule needs of a device beside weights and states.
struct DeviceMemory {
    MemoryArea arena;             // activations and scratch; one for all graphs of a session, as large as the largest
    MemoryArea slot;              // graph inputs and outputs, and values that other devices read: once for each slot
    uint32_t slots = 1;           // runs that may be in flight
    uint64_t constant_bytes = 0;  // of the graph and of decompositions
    uint64_t bytes() const { return arena.bytes + slot.bytes * slots + constant_bytes; }
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
    /// Indices of segments; Segment::first_wait and end_wait say whose. What follows from others isn't repeated.
    std::span<const uint32_t> waits() const { return waits_; }
    /// One per device.
    std::span<const DeviceMemory> memory() const { return memory_; }
    /// Nodes that were asked for: each ends its segment.
    std::span<const NodeId> observed() const { return observed_; }

    /// A line a node with device and code, segments with their copies, memory.
    std::string to_text() const;
    /// A directed graph in the DOT language: nodes in boxes by segment, coloured by device, copies as dashed edges.
    std::string to_dot() const;
    /// One JSON object: devices with memory, segments, copies, nodes with device and code.
    std::string to_json() const;

private:
    friend class Compiler;
    Graph graph_;
    std::vector<std::shared_ptr<Device>> devices_;
    LargeVector<Assignment> nodes_, values_;
    LargeVector<Segment> segments_;
    LargeVector<Copy> copies_;
    std::vector<uint32_t> waits_;
    std::vector<NodeId> observed_;
    std::vector<DeviceMemory> memory_;
};

}  // namespace tenon
