// Two shown runs side by side: after each node the reference's values take the place of the tested ones.
#include "tenon/compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/no_throw.h"
#include "graph/op_contract.h"
#include "sched/session_impl.h"
#include "sched/shown.h"
#include "tensor/difference.h"
#include "tensor/pieces.h"

namespace tenon {
namespace {

/// Of a node's output: what its op may be off, and what rounding to the value's type adds.
double limit_of(const Node &node, DType type) {
    // What a vendor's op computes isn't known here: the widest limit of the standard ops counts.
    const OpContract *contract = find_contract(node.op);
    const OpLimit limit = contract ? contract->limit : k_weighted;
    const double of_op = node.precision == Precision::exact ? limit.exact : limit.fast;
    if (of_op == 0) return 0;
    switch (type) {
        case DType::f32:
        case DType::f64: return of_op;
        case DType::f16: return std::max(of_op, 1e-6);   // 11 bits of significand
        case DType::bf16: return std::max(of_op, 3e-5);  // 8
        case DType::q8_0: return std::max(of_op, 5e-4);  // 8 bits of the largest of 32
        default: return 0;                               // integers
    }
}

}  // namespace

class Comparison {
public:
    Comparison(const Graph &graph, const CompareSide &tested, const CompareSide &reference)
        : graph_(graph), tested_(tested), reference_(reference) {}

    Status run(std::span<const InputValue> inputs, const OnDifference &on_difference, uint64_t token) {
        if (&tested_.session == &reference_.session)
            return Status::invalid_argument("a session can't be compared with itself: two are needed");
        TENON_ASSIGN(const auto tested, prepare(tested_, inputs));
        TENON_ASSIGN(const auto reference, prepare(reference_, inputs));
        TENON_TRY(copy_states());
        TENON_TRY(make_ready(tested_, *tested));
        TENON_TRY(make_ready(reference_, *reference));
        ShownRun got(*tested_.session.impl_->pipeline, tested, *tested->impl_, token);
        ShownRun expected(*reference_.session.impl_->pipeline, reference, *reference->impl_, token);
        for (;;) {
            TENON_ASSIGN(const NodeId node, next(expected, reference_));
            TENON_ASSIGN(const NodeId same, next(got, tested_));
            if (node != same) return Status::internal("the sides don't run the nodes in the same order");
            if (node == k_no_value) break;
            TENON_TRY(compare_node(node, got, expected, on_difference));
        }
        TENON_TRY(expected.finish().in(label(reference_)));
        return got.finish().in(label(tested_));
    }

private:
    const char *label(const CompareSide &side) const { return &side == &tested_ ? "tested side" : "reference"; }

    Result<std::shared_ptr<Executable>> prepare(const CompareSide &side, std::span<const InputValue> inputs) {
        TENON_TRY(side.session.synchronize().in(label(side)));
        auto executable = side.session.prepare(graph_, side.tensors, [](NodeId) { return true; });
        if (!executable.ok()) return std::move(executable).status().in(label(side));
        for (const InputValue &input : inputs)
            TENON_TRY(side.session.input_write(**executable, input.input, input.bytes).in(label(side)));
        return executable;
    }

    Status make_ready(const CompareSide &side, Executable &executable) {
        return side.session.impl_->make_ready(*executable.impl_).in(label(side));
    }

    Result<NodeId> next(ShownRun &run, const CompareSide &side) {
        auto node = run.next();
        if (!node.ok()) return std::move(node).status().in(label(side));
        return node;
    }

    Status copy_states() {
        for (ValueId leaf : graph_.leaves()) {
            const Value &value = graph_.values()[leaf];
            if (!(value.flags & TN_VALUE_STATE)) continue;
            Tensor to = *tested_.tensors.find(value.name);
            TENON_TRY(copy_contents(*reference_.tensors.find(value.name), to).in([&] {
                return fmt::format("copying '{}' from the reference", value.name);
            }));
        }
        return {};
    }

    Status compare_node(NodeId id, const ShownRun &got_run, const ShownRun &expected_run,
                        const OnDifference &on_difference) {
        const Node &node = graph_.nodes()[id];
        ShownRun::Outputs got(got_run, id), expected(expected_run, id);
        for (size_t i = 0; i < node.outputs.size(); ++i) {
            const ValueId base = graph_.base(node.outputs[i]);
            const Value &value = graph_.values()[base];
            DifferenceMeter meter(value.type);
            TENON_TRY(in_pieces(value.type, value.shape, [&](uint64_t at, std::span<std::byte> piece) -> Status {
                          other_.resize(piece.size());
                          TENON_TRY(got.read(i, other_, at).in(label(tested_)));
                          TENON_TRY(expected.read(i, piece, at).in(label(reference_)));
                          meter.add(other_, piece);
                          return got.write(i, piece, at).in(label(tested_));
                      }).in([&] { return fmt::format("node '{}'", node.name); }));
            TENON_TRY(on_difference({id, base, meter.result(), limit_of(node, value.type)}));
        }
        return {};
    }

    const Graph &graph_;
    const CompareSide &tested_, &reference_;
    std::vector<std::byte> other_;  // a piece of the tested side
};

Status compare(const Graph &graph, const CompareSide &tested, const CompareSide &reference,
               std::span<const InputValue> inputs, const OnDifference &on_difference, uint64_t cancel_token) {
    return no_throw([&] { return Comparison(graph, tested, reference).run(inputs, on_difference, cancel_token); });
}

}  // namespace tenon
