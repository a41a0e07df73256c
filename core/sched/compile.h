// From a graph and the memory that its weights lie in to plans and places: placement, split, order, one plan a segment,
// and memory by execution groups. Allocates no device memory and looks at no tensor; `attach` adds those.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sched/areas.h"
#include "sched/lowering.h"
#include "sched/order.h"
#include "sched/place.h"
#include "sched/split.h"
#include "tenon/session.h"

namespace tenon {

/// A base value as the runs see it: what it is and where.
struct Stored {
    DType type = DType::f32;
    Shape shape;
    const char *name = nullptr;  // of the graph or of a decomposition that `formulas` keeps
    Storage storage;
    MemoryPlace place;  // in its area
};

/// A buffer that plans are bound to: a chunk of an area, or the buffer of a tensor.
struct BindingSource {
    Storage::Kind kind = Storage::Kind::none;
    uint32_t device = 0, chunk = 0;
    const Buffer *buffer = nullptr;  // of tensors
};

/// A segment's plan and where its values lie, numbered as the plugin sees them.
struct CompiledSegment {
    struct LocalValue {
        uint32_t stored = k_no_value;  // its base; k_no_value where it is unstored
        uint64_t offset = 0;           // of a view, from its base
    };
    /// What was lowered, kept where CompileInput asks for it.
    struct Nodes {
        std::vector<uint32_t> operands, first_operand;  // those of node i are [first_operand[i], first_operand[i + 1])
    };
    std::unique_ptr<Plan> plan;
    std::vector<LocalValue> values;
    std::vector<Storage> scratch;    // per group
    std::vector<uint32_t> bindings;  // indices of Compiled::sources, once attached
    Nodes nodes;
    uint32_t begin = 0, end = 0;  // on its device's clock: waits at `begin`, copies in, then groups
};

struct Compiled {
    Schedule schedule;
    std::unique_ptr<Decompositions> formulas;
    DeviceSet devices;
    BoundTypes bound;
    Order order;
    std::unique_ptr<Areas> areas;
    LargeVector<Stored> stored;
    LargeVector<uint32_t> stored_of_value;  // per value of the graph: its base's
    std::vector<uint32_t> stored_of_copy;   // per copy of the schedule
    std::vector<CompiledSegment> segments;
    std::vector<bool> awaited;  // per segment: another device waits for its end
    struct Constant {
        uint32_t stored;
        const std::span<const std::byte> *bytes;  // of the graph or of `formulas`
    };
    std::vector<Constant> constants;
    std::vector<ValueId> leaves;  // weights and states, in the order of `tensors`

    // Once attached:
    std::vector<Tensor> tensors;
    std::vector<BindingSource> sources;

    const Graph &graph() const { return schedule.graph(); }
};

struct CompileInput {
    const DeviceSet &devices;
    const BoundTypes &bound;
    std::span<const uint32_t> pinned;  // per node, or empty
    std::span<const NodeId> observed;  // rising
    TypeSupport &types;
    uint32_t slots = 1;
    bool keep_nodes = false;  // for whoever checks the plan
};

/// Checks that there is a tensor of the right type and shape for each weight and state.
Result<BoundTypes> types_of(const Graph &graph, const TensorMap &tensors);

Result<std::unique_ptr<Compiled>> compile(const Graph &graph, const CompileInput &input);

/// Tells the plans where everything lies. Once. `tensors` lie in the types that this was compiled for.
Status attach(Compiled &compiled, const TensorMap &tensors);

/// "blk.0.attn_norm ... blk.3.ffn_down", for messages.
std::string segment_label(const Graph &graph, const Segment &segment);

/// Placement alone, for questions about it.
struct PlacedGraph {
    SupportTable support;
    MemoryReach reach;
    Placement placement;
};
Result<PlacedGraph> place_graph(const Graph &graph, const ValueTable &values, const CompileInput &input,
                                Decompositions &formulas);

}  // namespace tenon
