// Is a compiled graph's memory right? Found from the schedule, the plugins' answers and the places alone: who touches
// which bytes when, and what is known to have happened before what. The scheduler's lifetimes aren't looked at.
#pragma once

#include <string>

#include "sched/compile.h"

namespace tenon::testing {

/// Empty, or what is wrong, in words. `compiled` with CompileInput::keep_nodes, attached or not.
std::string check_memory(const Compiled &compiled);

/// Compiles a graph as a session of these devices would, and checks that.
Status check_compiled(const Graph &graph, const std::vector<std::shared_ptr<Device>> &devices, const TensorMap &tensors,
                      std::span<const Pin> pins, uint32_t slots);

}  // namespace tenon::testing
