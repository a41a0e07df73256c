// Where each weight and state should lie.
#pragma once

#include <vector>

#include "sched/reach.h"
#include "tenon/session.h"

namespace tenon {

/// What each device supports, as if all weights and states lay in one of its buffer types: each is asked once.
class Homes {
public:
    static Result<Homes> ask(const Graph &graph, const DeviceSet &devices, std::span<const Pin> pins);

    /// The first device from `first` on, and there the first memory, that supports all uses of a weight or state; where
    /// there is none, the first of all. unsupported names the tensor and each device's reason.
    Result<TensorHome> choose(ValueId tensor, uint32_t first = 0) const;
    /// Of all weights and states, in order.
    Result<std::vector<TensorHome>> choose_all() const;

private:
    Homes(const Graph &graph, const DeviceSet &devices) : graph_(&graph), devices_(&devices) {}
    struct Candidate {
        uint32_t device;
        BufferType type;
        std::vector<bool> runs;  // per node: supported there, and not pinned elsewhere
    };
    Status no_home(ValueId id) const;

    const Graph *graph_;
    const DeviceSet *devices_;
    std::vector<Candidate> candidates_;
    std::vector<std::vector<NodeId>> users_;  // per base
};

/// Session::place_tensors.
inline Result<std::vector<TensorHome>> choose_homes(const Graph &graph, const DeviceSet &devices,
                                                    std::span<const Pin> pins) {
    TENON_ASSIGN(const Homes homes, Homes::ask(graph, devices, pins));
    return homes.choose_all();
}

/// A weight or state that the application gives.
inline bool is_tensor(const Value &value) {
    return value.view_of == k_no_value && (value.flags & (TN_VALUE_WEIGHT | TN_VALUE_STATE)) && !value.constant;
}

}  // namespace tenon
