// The 128-bit hashes of a graph, and its ops.
#pragma once

#include "tenon/graph.h"

namespace tenon {

GraphHash hash_structure(std::span<const Value> values, std::span<const Node> nodes, std::span<const ValueId> outputs,
                         const OpSet *ops);
GraphHash hash_names(std::span<const Value> values, std::span<const ValueId> leaves, std::span<const Node> nodes);

GraphHash hash_names(std::span<const Value> values, std::span<const Node> nodes);

/// Standard op, or vendor op of the set (which may be null).
const OpInfo *find_op(const OpSet *ops, uint32_t id);
const OpInfo *find_op(const OpSet *ops, std::string_view name);

}  // namespace tenon
