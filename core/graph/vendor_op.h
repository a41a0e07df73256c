// Vendor ops bring their contract with them: shape inference and decomposition through the C functions that the plugin
// registered (tn_op_info).
#pragma once

#include <span>

#include "graph/op_contract.h"

namespace tenon {

/// Asks the plugin for the outputs' types and shapes.
Status infer_vendor(const OpCall &call, std::span<OutputSpec> out);

/// Asks the plugin for the formula: an id for each output, or none where the op has no formula. Fails where the plugin
/// does, or where its formula is half or wrong; `b` may then have failed too, and holds nothing of use.
Result<std::vector<ValueId>> decompose_vendor(GraphBuilder &b, const OpCall &call, std::span<const ValueId> operands);

}  // namespace tenon
