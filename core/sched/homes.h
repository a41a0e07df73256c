// Where each weight and state should lie.
#pragma once

#include <vector>

#include "sched/reach.h"
#include "tenon/session.h"

namespace tenon {

/// Session::place_tensors. Asks each device once for each of its buffer types, as if all weights and states lay there.
Result<std::vector<TensorHome>> choose_homes(const Graph &graph, const DeviceSet &devices, std::span<const Pin> pins);

/// A weight or state that the application gives.
inline bool is_tensor(const Value &value) {
    return value.view_of == k_no_value && (value.flags & (TN_VALUE_WEIGHT | TN_VALUE_STATE)) && !value.constant;
}

}  // namespace tenon
