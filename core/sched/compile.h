// From a graph with bound tensors to plans and offsets: placement, split, one plan a segment, and memory by execution
// groups. Allocates no device memory.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "sched/lowering.h"
#include "sched/memory.h"
#include "sched/place.h"
#include "sched/split.h"
#include "tenon/session.h"

namespace tenon {

/// Where a base value's bytes are.
struct Storage {
    enum class Kind { none, tensor, io, arena };
    Kind kind = Kind::none;
    uint32_t device = 0;  // whose io or arena
    uint32_t index = 0;   // of the tensor in Compiled::tensors; of the interval of the device's arena
    uint64_t offset = 0;  // in the io or arena, once planned
};

/// A base value as the runs see it: what it is and where.
struct Slot {
    DType type = DType::f32;
    Shape shape;
    const char *name = nullptr;  // of the graph or of a decomposition that `formulas` keeps
    Storage storage;
};

/// A buffer that a plan is bound to: a device's io or arena, or the buffer of a tensor.
struct BindingSource {
    Storage::Kind kind = Storage::Kind::none;
    uint32_t device = 0;
    const Buffer *buffer = nullptr;  // of tensors
    bool operator==(const BindingSource &) const = default;
};

/// A segment's plan and how its values are bound. Values are numbered as the plugin sees them.
struct CompiledSegment {
    uint32_t device = 0;
    std::unique_ptr<Lowering> lowering;  // while compiling only
    std::unique_ptr<Plan> plan;
    std::vector<uint32_t> slot_of;  // per value: its base's slot; k_no_value where it is unstored
    std::vector<Storage> scratch;   // per group
    std::vector<BindingSource> bindings;
    std::string label;  // "blk.0.attn_norm ... blk.3.ffn_down", for messages
};

struct Compiled {
    Schedule schedule;
    std::unique_ptr<Decompositions> formulas;
    std::vector<Tensor> tensors;  // weights and states
    std::vector<Slot> slots;
    std::vector<uint32_t> slot_of_value;  // per value of the graph: its base's slot
    std::vector<uint32_t> slot_of_copy;   // per copy of the schedule
    std::vector<CompiledSegment> segments;
    struct Constant {
        uint32_t slot;
        const std::span<const std::byte> *bytes;  // of the graph or of `formulas`
    };
    std::vector<Constant> constants;  // to be written once the io memory is there
    uint64_t plans = 0;               // how many were prepared
};

/// What all compilations of a session share.
struct CompileContext {
    const DeviceList &devices;
    std::span<const Pin> pins;
    TypeSupport types;  // asked anew in each compilation: devices may have changed in between
};

Result<std::unique_ptr<Compiled>> compile(const Graph &graph, const TensorMap &tensors, CompileContext &context);

/// Placement alone, for questions about it.
struct PlacedGraph {
    SupportTable support;
    MemoryReach reach;
    Placement placement;
    std::vector<uint32_t> pinned;
};
Result<PlacedGraph> place_graph(const Graph &graph, const BoundTypes &bound, Decompositions &formulas,
                                CompileContext &context);

/// Where each weight and state should lie (Session::place_tensors). Asks each device once for each of its buffer types,
/// as if all weights and states lay there.
Result<std::vector<TensorHome>> choose_homes(const Graph &graph, CompileContext &context);

}  // namespace tenon
