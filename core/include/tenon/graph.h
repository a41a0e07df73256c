// Graphs of ops over values. A GraphBuilder makes one, checks each op's contract and infers shapes; `finish` freezes
// it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/abi.h"
#include "tenon/arena.h"
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
/// values that name the base whose bytes they share; no node makes them. Plain data: what it points to lies in the
/// memory of the graph (builder, decomposition) that it was read from, and is valid as long as that.
struct Value {
    DType type = DType::f32;
    uint32_t flags = 0;            // TN_VALUE_
    ValueId view_of = k_no_value;  // a base, never itself a view
    NodeId producer = k_no_value;  // the node that writes it; none for inputs, weights, states and pure views
    uint64_t offset = 0;           // bytes from the base's element 0
    Shape shape;
    std::array<int64_t, TN_MAX_RANK> stride_bytes{};
    Name name;
    const std::span<const std::byte> *constant = nullptr;  // a constant's bytes; null for all else
};

/// An op's params struct as read from somewhere, 8-aligned; empty where the op has none. Points to memory of others.
class ParamView {
public:
    ParamView() = default;
    ParamView(const void *params, uint64_t bytes) : data_(bytes ? params : nullptr), bytes_(bytes) {}
    /// Takes a struct with head whose struct_size says how much of it counts.
    template <class T>
    static ParamView of(const T &params) {
        return ParamView(&params, params.struct_size);
    }

    const void *data() const { return data_; }
    std::span<const std::byte> bytes() const { return {static_cast<const std::byte *>(data_), bytes_}; }
    template <class T>
    const T &as() const {
        return *static_cast<const T *>(data_);
    }

private:
    const void *data_ = nullptr;
    uint64_t bytes_ = 0;
};

/// The same with storage of its own: what callers hand to a builder. Takes no heap for params of usual size.
class ParamBlob {
public:
    ParamBlob() = default;
    template <class T>
    static ParamBlob of(const T &params) {
        return ParamBlob(&params, params.struct_size);
    }
    /// Throws std::bad_alloc for params of more than 64 bytes.
    ParamBlob(const void *params, uint64_t bytes);

    operator ParamView() const { return ParamView(data(), count_ * sizeof(uint64_t)); }
    const void *data() const { return count_ == 0 ? nullptr : count_ <= near_.size() ? near_.data() : far_.data(); }
    std::span<const std::byte> bytes() const { return ParamView(*this).bytes(); }
    template <class T>
    const T &as() const {
        return *static_cast<const T *>(data());
    }

private:
    size_t count_ = 0;  // words; the last one is filled up with zeros
    std::array<uint64_t, 8> near_{};
    std::vector<uint64_t> far_;
};

/// An op over values. Plain data, as Value is.
struct Node {
    uint32_t op = 0;
    Precision precision = Precision::fast;
    std::span<const ValueId> inputs;  // k_no_value where an optional input is absent
    std::span<const ValueId> outputs;
    ParamView params;
    Name name;  // "blk.3.attn_q"; what pins are matched against
};

struct GraphHash {
    uint64_t high = 0, low = 0;
    auto operator<=>(const GraphHash &) const = default;
};

class NameIndex;
struct OutputSpec;

/// A frozen graph: never changed by anyone. Copies share one body, which holds all that values and nodes point to. Any
/// thread. Nothing here throws or walks by recursion, so that graphs may have millions of nodes.
class Graph {
public:
    std::span<const Value> values() const { return body_->values; }
    std::span<const Node> nodes() const { return body_->nodes; }
    /// In the order in which they were declared.
    std::span<const ValueId> inputs() const { return body_->inputs; }
    std::span<const ValueId> outputs() const { return body_->outputs; }
    /// Values that no node writes and that are no views: inputs, weights, states and constants, in order.
    std::span<const ValueId> leaves() const { return body_->leaves; }
    /// Of structure: ops by name, params, types, shapes, strides, aliasing, flags, precision; no names, no addresses.
    /// Graphs with equal hashes are placed, split and planned alike, as long as no name plays a part.
    GraphHash hash() const { return body_->hash; }
    /// Of names: those of the leaves (inputs, weights, states, constants) and of the nodes, both in order. Graphs that
    /// are equal in this and in `hash` find the same tensors and are met by the same pins.
    GraphHash names() const { return body_->names; }
    /// Per value what `base` answers: flat, for passes over all operands.
    std::span<const ValueId> bases() const { return body_->bases; }
    /// Per value its flags, flat for the same reason: a Value is some 200 bytes.
    std::span<const uint32_t> flags() const { return body_->flags; }
    /// Some node's output is a view of what was there before.
    bool changes_in_place() const { return body_->changes_in_place; }
    /// The value without views: itself, or the base that it shares bytes with.
    ValueId base(ValueId id) const { return body_->bases[id]; }
    /// The first leaf or node's output of that name; k_no_value where there is none. The first call makes an index of
    /// all names, the others take constant time; where there is no memory for one, all names are looked through.
    ValueId find(std::string_view value_name) const noexcept;
    const OpInfo &op(const Node &node) const;

private:
    friend class GraphBuilder;
    struct Body {
        Body() = default;
        ~Body();
        Arena memory;
        FlatArray<Value> values;
        FlatArray<Node> nodes;
        FlatArray<ValueId> bases, leaves, inputs, outputs;
        FlatArray<uint32_t> flags;
        bool changes_in_place = false;
        GraphHash hash, names;
        const OpSet *ops = nullptr;
        std::shared_ptr<const void> ops_owner;
        mutable std::atomic<const NameIndex *> index = nullptr;  // owned; made by the first find
    };
    std::shared_ptr<const Body> body_;
};

/// One line a node: outputs, op, params, inputs, types and shapes. Empty where there is no memory for the text.
std::string to_text(const Graph &graph) noexcept;

/// Builds a graph. The first failure is kept and answered by `finish`; calls after it do nothing, so that model code
/// reads as formulas. Nothing here throws: no memory is such a failure too. Shapes as in OPS.md; row-major. What a
/// value or node points to stays where it is while the graph grows, and lies in the graph afterwards. One thread.
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
    /// `{a, b}` where no vector is at hand.
    ValueId node(uint32_t op, std::initializer_list<ValueId> inputs, ParamBlob params = {}, std::string name = {});
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

    /// Valid until the next value is added; what it points to longer.
    const Value &value(ValueId id) const { return values_[id]; }
    bool failed() const { return !status_.ok(); }
    /// Freezes: the graph, or the first failure. Linear in values, nodes and operands.
    Result<Graph> finish() &&;

private:
    friend class Decomposer;
    template <class Answer, class Body>
    Answer guarded(Answer otherwise, Body &&body) noexcept;
    ValueId fail(Status status);
    ValueId add_value(const Value &value);
    std::optional<Value> make_value(Name name, DType type, const Shape &shape);
    ValueId add_leaf(std::string_view name, DType type, const Shape &shape, uint32_t flag) noexcept;
    ValueId add_view(ValueId x, const Shape &shape, std::span<const int64_t> strides, uint64_t offset);
    bool known(ValueId id);
    std::span<const ValueId> add_node(const OpInfo *op, std::span<const ValueId> inputs, ParamView params,
                                      std::string_view name, std::optional<DType> type = {});
    Status add_outputs(Node &node, std::span<const OutputSpec> specs);
    ValueId add_one(const OpInfo *op, std::span<const ValueId> inputs, ParamView params, std::string_view name,
                    std::optional<DType> type = {}) noexcept;
    ValueId add_one(uint32_t op, std::span<const ValueId> inputs, ParamView params, std::string_view name) noexcept;
    ValueId add_one(uint32_t op, std::initializer_list<ValueId> inputs, ParamView params, std::string_view name) {
        return add_one(op, std::span(inputs.begin(), inputs.size()), params, name);
    }
    Status broadcast_inputs(uint32_t op, std::span<ValueId> inputs);
    Name node_name(std::string_view name, std::string_view op);
    Status check_leaves() const;

    const OpSet *ops_;
    std::shared_ptr<const void> owner_;
    Precision precision_ = Precision::fast;
    std::string scope_;
    Status status_;
    Arena memory_;
    FlatArray<Value> values_;
    FlatArray<Node> nodes_;
    FlatArray<ValueId> bases_, leaves_, inputs_, outputs_;
};

}  // namespace tenon
