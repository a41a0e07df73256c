// Graphs of ops over values. A GraphBuilder makes one, checks each op's contract and infers shapes; `finish` freezes
// it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/abi.h"
#include "tenon/dtype.h"
#include "tenon/op_set.h"
#include "tenon/ops.h"
#include "tenon/status.h"
#include "tenon/tensor.h"

namespace tenon {

/// Index of a value or node in its graph. k_no_value also stands for an absent optional input.
using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t k_no_value = TN_NONE;

enum class Precision : uint32_t { fast = TN_PRECISION_FAST, exact = TN_PRECISION_EXACT };

/// A tensor in a graph. Views (reshape, slice, permute, broadcast, and outputs that must lie where an input lies) are
/// values that name the base whose bytes they share; no node makes them.
struct Value {
    DType type = DType::f32;
    Shape shape;
    std::array<int64_t, TN_MAX_RANK> stride_bytes{};
    uint32_t flags = 0;            // TN_VALUE_
    ValueId view_of = k_no_value;  // a base, never itself a view
    uint64_t offset = 0;           // bytes from the base's element 0
    NodeId producer = k_no_value;  // the node that writes it; none for inputs, weights, states and pure views
    std::string name;
    std::shared_ptr<const std::vector<std::byte>> constant;  // a constant's bytes; null for all else
};

/// An op's params struct, in 8-aligned storage; empty where the op has none.
class ParamBlob {
public:
    ParamBlob() = default;
    /// Takes a struct with head whose struct_size says how much of it counts.
    template <class T>
    static ParamBlob of(const T &params) {
        return ParamBlob(&params, params.struct_size);
    }
    ParamBlob(const void *params, uint64_t bytes);

    const void *data() const { return words_.empty() ? nullptr : words_.data(); }
    std::span<const std::byte> bytes() const { return std::as_bytes(std::span(words_)); }
    template <class T>
    const T &as() const {
        return *reinterpret_cast<const T *>(words_.data());
    }

private:
    std::vector<uint64_t> words_;
};

struct Node {
    uint32_t op = 0;
    Precision precision = Precision::fast;
    std::vector<ValueId> inputs;  // k_no_value where an optional input is absent
    std::vector<ValueId> outputs;
    ParamBlob params;
    std::string name;  // "blk.3.attn_q"; what pins are matched against
};

struct GraphHash {
    uint64_t high = 0, low = 0;
    auto operator<=>(const GraphHash &) const = default;
};

/// A frozen graph: never changed by anyone. Copies share one body; any thread.
class Graph {
public:
    std::span<const Value> values() const { return body_->values; }
    std::span<const Node> nodes() const { return body_->nodes; }
    /// In the order in which they were declared.
    std::span<const ValueId> inputs() const { return body_->inputs; }
    std::span<const ValueId> outputs() const { return body_->outputs; }
    /// Of structure: ops by name, params, types, shapes, strides, aliasing, flags, precision; no names, no addresses.
    GraphHash hash() const { return body_->hash; }
    GraphHash names() const { return body_->names; }
    /// The value without views: itself, or the base that it shares bytes with.
    ValueId base(ValueId id) const { return values()[id].view_of == k_no_value ? id : values()[id].view_of; }
    /// k_no_value where there is none.
    ValueId find(std::string_view value_name) const;
    const OpInfo &op(const Node &node) const;

private:
    friend class GraphBuilder;
    struct Body {
        std::vector<Value> values;
        std::vector<Node> nodes;
        std::vector<ValueId> inputs, outputs;
        GraphHash hash;
        GraphHash names;
        const OpSet *ops = nullptr;
        std::shared_ptr<const void> ops_owner;
    };
    std::shared_ptr<const Body> body_;
};

/// One line a node: outputs, op, params, inputs, types and shapes.
std::string to_text(const Graph &graph);

/// Builds a graph. The first failure is kept and answered by `finish`; calls after it do nothing, so that model code
/// reads as formulas. Shapes as in OPS.md; row-major. One thread.
class GraphBuilder {
public:
    /// `ops` adds a registry's vendor ops; `owner` keeps it alive as long as graphs made here.
    explicit GraphBuilder(const OpSet *ops = nullptr, std::shared_ptr<const void> owner = nullptr);

    /// Precision of the nodes that follow.
    void set_precision(Precision precision) { precision_ = precision; }
    /// "blk.3." put before the names of nodes and values that follow.
    void set_scope(std::string scope) { scope_ = std::move(scope); }

    // Leaves. Names are unique in a graph and take no scope.
    ValueId input(std::string name, DType type, Shape shape);
    ValueId weight(std::string name, DType type, Shape shape);
    ValueId state(std::string name, DType type, Shape shape);
    /// A small weight whose bytes the graph itself carries (copied).
    ValueId constant(DType type, Shape shape, std::span<const std::byte> bytes);

    // Views: no work.
    ValueId reshape(ValueId x, Shape shape);
    ValueId slice(ValueId x, uint32_t axis, int64_t start, int64_t size, int64_t step = 1);
    ValueId permute(ValueId x, std::span<const uint32_t> order);
    ValueId broadcast(ValueId x, Shape shape);

    /// A node with one output. `name` is the node's and its output's; empty: the op's name and a number.
    ValueId node(uint32_t op, std::vector<ValueId> inputs, ParamBlob params = {}, std::string name = {});
    /// With any number of outputs.
    std::vector<ValueId> nodes(uint32_t op, std::vector<ValueId> inputs, ParamBlob params = {}, std::string name = {});
    /// By name, vendor ops too.
    ValueId node(std::string_view op, std::vector<ValueId> inputs, ParamBlob params = {}, std::string name = {});

    /// Any strides to contiguous, in another type where one is named.
    ValueId copy(ValueId x, std::optional<DType> type = {}, std::string name = {});

    // The ops that models are written with. Optional inputs: k_no_value.
    ValueId add(ValueId a, ValueId b, std::string name = {});
    ValueId mul(ValueId a, ValueId b, std::string name = {});
    ValueId affine(ValueId x, float a, float b, std::string name = {});
    /// x [..., in], w [out, in], optional b [out]
    ValueId linear(ValueId x, ValueId w, ValueId b, std::string name = {});
    ValueId rms_norm(ValueId x, ValueId w, float eps, std::string name = {});
    ValueId gather_rows(ValueId table, ValueId ids, std::string name = {});
    ValueId rope(ValueId x, ValueId pos, ValueId factors, tn_params_rope params, std::string name = {});
    ValueId swiglu(ValueId gate, ValueId up, std::string name = {});
    /// Answers the cache as it is afterwards; read that one, not the state.
    ValueId kv_append(ValueId cache, ValueId rows, ValueId row_ids, std::string name = {});
    struct KvView {
        ValueId q_pos, seq, blocks, kv_start, kv_len;
    };
    ValueId attention(ValueId q, ValueId k_cache, ValueId v_cache, const KvView &kv, ValueId sinks,
                      tn_params_attention params, std::string name = {});

    /// Someone reads it after the run.
    void output(ValueId x);

    const Value &value(ValueId id) const { return values_[id]; }
    bool failed() const { return !status_.ok(); }
    /// Freezes: the graph, or the first failure.
    Result<Graph> finish() &&;

private:
    friend class Decomposer;
    ValueId fail(Status status);
    ValueId add_value(Value value);
    ValueId add_leaf(std::string name, DType type, const Shape &shape, uint32_t flag);
    ValueId add_view(ValueId x, const Shape &shape, std::span<const int64_t> strides, uint64_t offset);
    bool known(ValueId id);
    std::vector<ValueId> add_node(const OpInfo *op, std::vector<ValueId> inputs, ParamBlob params, std::string name,
                                  std::optional<DType> type = {});
    Status broadcast_inputs(uint32_t op, std::vector<ValueId> &inputs);
    std::string auto_name(std::string name, std::string_view op) const;

    const OpSet *ops_;
    std::shared_ptr<const void> owner_;
    Precision precision_ = Precision::fast;
    std::string scope_;
    Status status_;
    std::vector<Value> values_;
    std::vector<Node> nodes_;
    std::vector<ValueId> inputs_, outputs_;
};

}  // namespace tenon
