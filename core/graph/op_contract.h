// What a file in graph/ops/ says about its ops: shape inference, and for composites the formula in primitives. The
// build collects the folder: each x.cpp defines `op_contracts_x()`, so that a new op edits no list.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <span>
#include <vector>

#include "tenon/graph.h"
#include "tenon/ops.h"

namespace tenon {

/// One use of an op, as its contract sees it. Valid during the call only.
struct OpCall {
    const OpInfo &op;
    std::span<const Value *const> inputs;  // null where an optional input is absent
    ParamView params;
    std::optional<DType> requested_type;  // copy: the type to copy to
    Precision precision;

    bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
    const Value &in(size_t i) const { return *inputs[i]; }
};

struct OutputSpec {
    DType type = DType::f32;
    Shape shape;
    int alias_of = -1;  // the input whose bytes it is
};

/// How inputs are brought to one shape before inference, by stride 0.
enum class Broadcast { none, all, to_first };

/// The largest normalised mean squared error that a result may have against the reference, both computed from the same
/// inputs. Rounding to an output type shorter than f32 comes on top (tenon/compare.h).
struct OpLimit {
    double exact, fast;  // by the node's precision
};
/// Moves or picks values: nothing may differ. Integers are judged so in any op.
inline constexpr OpLimit k_no_error{0, 0};
/// A few roundings of f32, of 2^-24 each.
inline constexpr OpLimit k_rounded{1e-12, 1e-12};
/// A sum along a row in any order; functions by polynomials, in fast precision by shorter ones.
inline constexpr OpLimit k_summed{1e-10, 1e-8}, k_function{1e-9, 1e-7};
/// Sums of products, in fast precision of halves.
inline constexpr OpLimit k_product{1e-9, 5e-4};
/// Products with weights: in fast precision activations may be quantised to 8 bits. Rows that hold outliers and nearly
/// cancel suffer most, as a text's first token does (7.5e-3 measured in SmolLM2-135M); exact precision finds what hides
/// below.
inline constexpr OpLimit k_weighted{1e-9, 2e-2};

struct OpContract {
    uint32_t id;
    /// Checks operands and fills the outputs' types and shapes. invalid_argument says what doesn't fit.
    Status (*infer)(const OpCall &call, std::span<OutputSpec> out);
    OpLimit limit;
    /// The same result by primitives: writes nodes into the builder, whose values `operands` stand for the inputs, and
    /// answers the outputs. Null for primitives.
    std::vector<ValueId> (*decompose)(GraphBuilder &b, const OpCall &call, std::span<const ValueId> operands) = nullptr;
    Broadcast broadcast = Broadcast::none;
};

/// Null for views, reserved and vendor ops.
const OpContract *find_contract(uint32_t id);

inline bool is_float(DType type) {
    return type == DType::f32 || type == DType::f16 || type == DType::bf16;
}
inline bool is_index(DType type) {
    return type == DType::i32 || type == DType::i64;
}
/// Contiguous in row-major order (sizes 1 may have any stride); empty counts.
bool is_contiguous(const Value &value);
/// For formulas that reshape: x, or a copy of it whose elements lie in order.
inline ValueId in_order(GraphBuilder &b, ValueId x) {
    return b.failed() || is_contiguous(b.value(x)) ? x : b.copy(x);
}

/// For formulas with weights: x, or a copy of it in that type.
inline ValueId in_type(GraphBuilder &b, ValueId x, DType type) {
    return b.failed() || b.value(x).type == type ? x : b.copy(x, type);
}

}  // namespace tenon

#define TENON_REQUIRE(condition, ...) \
    if (!(condition)) return ::tenon::Status::invalid_argument(fmt::format(__VA_ARGS__))
