#include "graph/decompose.h"

#include <fmt/format.h>

#include "graph/op_contract.h"
#include "graph/vendor_op.h"

namespace tenon {

/// Runs a formula in a builder of its own, whose leaves are the node's operands.
class Decomposer {
public:
    Decomposer(const Graph &graph, const Node &node) : graph_(graph), node_(node) {
        builder_.set_precision(node.precision);
        builder_.set_scope(fmt::format("{}/", node.name));
        for (ValueId id : node.inputs) local_.push_back(id == k_no_value ? k_no_value : operand(id));
    }

    Result<std::optional<Decomposition>> run(std::string *why_none) {
        const OpInfo &op = graph_.op(node_);
        const bool vendor = op.kind == OpKind::vendor;
        const auto results = formula(op);
        Status status = results.status();
        if (status.ok() && results->empty()) return std::optional<Decomposition>();
        if (status.ok() && vendor) status = check_results(*results);
        if (status.ok()) {
            out_.results = settle(*results);
            status = builder_.status_;
        }
        if (!status.ok()) {
            status = std::move(status).in(fmt::format("decomposition of '{}' ({})", node_.name, op.name));
            if (!vendor) return status;
            // A plugin's mistake costs its formula, not the graph: a device that runs the op as it is can do without.
            if (why_none) *why_none = status.message();
            return std::optional<Decomposition>();
        }
        out_.graph = graph_;
        out_.memory = std::move(builder_.memory_);
        out_.values = std::move(builder_.values_);
        out_.nodes = std::move(builder_.nodes_);
        return std::optional(std::move(out_));
    }

private:
    ValueId operand(ValueId id) {
        Value leaf = graph_.values()[id];
        leaf.flags = graph_.values()[graph_.base(id)].flags & ~TN_VALUE_OBSERVED;
        leaf.view_of = k_no_value;
        leaf.offset = 0;
        leaf.producer = k_no_value;
        out_.operands.push_back(id);
        return builder_.add_value(leaf);
    }

    /// The outputs in the builder; none where the op has no formula.
    Result<std::vector<ValueId>> formula(const OpInfo &op) {
        std::vector<const Value *> inputs;
        for (ValueId id : node_.inputs) inputs.push_back(id == k_no_value ? nullptr : &graph_.values()[id]);
        const OpCall call{op, inputs, node_.params, std::nullopt, node_.precision};
        if (op.kind == OpKind::vendor) {
            auto results = decompose_vendor(builder_, call, local_);
            // What the builder refused says more than that the formula then failed.
            if (!builder_.status_.ok()) return builder_.status_;
            return results;
        }
        const OpContract *contract = find_contract(op.id);
        if (!contract || !contract->decompose) return std::vector<ValueId>();
        auto results = contract->decompose(builder_, call, local_);
        if (!builder_.status_.ok()) return builder_.status_;
        return results;
    }

    /// They take the place of the node's outputs, whose types and shapes its infer function gave.
    Status check_results(const std::vector<ValueId> &results) const {
        for (size_t i = 0; i < node_.outputs.size(); ++i) {
            const Value &output = graph_.values()[node_.outputs[i]], &result = builder_.values_[results[i]];
            if (result.type != output.type || !(result.shape == output.shape))
                return Status::internal(fmt::format("its formula gives {} {} for output {}, its infer function {} {}",
                                                    dtype_info(result.type).name, to_string(result.shape), i,
                                                    dtype_info(output.type).name, to_string(output.shape)));
        }
        return {};
    }

    /// Every result must be contiguous bytes of its own, since it takes the place of the node's output.
    std::vector<ValueId> settle(const std::vector<ValueId> &results) {
        std::vector<ValueId> settled;
        for (size_t i = 0; i < node_.outputs.size() && i < results.size(); ++i) {
            const Value &output = graph_.values()[node_.outputs[i]];
            if (output.view_of != k_no_value) {
                settled.push_back(k_no_value);
                continue;
            }
            if (!builder_.known(results[i])) break;
            const Value &result = builder_.values_[results[i]];
            const bool own =
                result.view_of == k_no_value && result.producer != k_no_value && result.shape == output.shape;
            settled.push_back(own ? results[i] : builder_.copy(results[i]));
        }
        return settled;
    }

    const Graph &graph_;
    const Node &node_;
    GraphBuilder builder_;
    Decomposition out_;
    std::vector<ValueId> local_;
};

Result<std::optional<Decomposition>> decompose(const Graph &graph, NodeId node, std::string *why_none) {
    return Decomposer(graph, graph.nodes()[node]).run(why_none);
}

}  // namespace tenon
