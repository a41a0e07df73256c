// Vendor ops bring their contract with them: shape inference and decomposition through the C functions that the plugin
// registered (tn_op_info).
#pragma once

#include <span>

#include "graph/op_contract.h"

namespace tenon {

/// Asks the plugin for the outputs' types and shapes.
Status infer_vendor(const OpCall &call, std::span<OutputSpec> out);

/// Asks the plugin for the formula; answers no ids where it has none. `b` fails where the plugin's answer is wrong.
std::vector<ValueId> decompose_vendor(GraphBuilder &b, const OpCall &call, std::span<const ValueId> operands);

}  // namespace tenon
