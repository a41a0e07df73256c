// How far results lie apart: of two ranges of bytes, and of a graph on the devices of two sessions, node by node.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "tenon/dtype.h"
#include "tenon/session.h"
#include "tenon/status.h"

namespace tenon {

/// How far `got` lies from `expected`, element by element.
struct Difference {
    /// The error's energy over the reference's, sum (got - expected)^2 / sum expected^2: 0 where both are equal,
    /// infinite where only the reference's is 0, or where one is NaN, or infinite, and the other isn't the same. For
    /// integers, and for types in blocks other than q8_0, the share of elements or blocks that are unequal.
    double nmse = 0;
    uint64_t elements = 0, unequal = 0;  // of blocks that aren't decoded, blocks
    uint64_t worst = 0;                  // index of the largest error; the first such
    double got = 0, expected = 0;        // there; 0 for blocks that aren't decoded
};

/// Both hold whole elements of `type` in canonical layout; invalid_argument otherwise, or for different sizes.
Result<Difference> difference(DType type, std::span<const std::byte> got, std::span<const std::byte> expected);

/// A session, and where the graph's weights and states lie in it.
struct CompareSide {
    Session &session;
    const TensorMap &tensors;
};

/// What both sides get for an input of the graph; as Session::input_write wants it.
struct InputValue {
    ValueId input = k_no_value;
    std::span<const std::byte> bytes;
};

/// One output of one node. `value` is the base that the output lies in, which is compared whole.
struct NodeDifference {
    NodeId node = k_no_value;
    ValueId value = k_no_value;
    Difference difference;
    /// The largest NMSE that the op's contract allows in the node's precision, rounding to the value's type on top.
    double limit = 0;
    bool within() const { return difference.nmse <= limit; }
};

/// Told of each output of each node in turn. A failure ends the comparison with it.
using OnDifference = std::function<Status(const NodeDifference &difference)>;

/// Runs a graph on both sides, node by node, one side and one device at a time. Every node of the tested side computes
/// from the reference's values, states included, so that each answers for its own error alone. Changes the states of
/// both sides as one run of the reference does. Errors name the side. `cancel_token` counts for both sides, which are
/// sessions of one registry.
Status compare(const Graph &graph, const CompareSide &tested, const CompareSide &reference,
               std::span<const InputValue> inputs, const OnDifference &on_difference, uint64_t cancel_token = 0);

}  // namespace tenon
