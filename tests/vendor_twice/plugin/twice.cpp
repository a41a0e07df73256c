// The smallest plugin with a purpose: one device on host memory that takes over one standard op, and an op of its own.
#include <cmath>

#include "tenon/plugin.hpp"

namespace {

using namespace tenon::plugin;

/// twice.twice: y = x + x, for f32 of any shape; decomposes into add, so that devices which never heard of it run it.
class TwiceOp : public VendorOp {
public:
    explicit TwiceOp(Instance &instance) : VendorOp(instance, {.name = "twice.twice"}, true) {}

    std::vector<TensorShape> infer(const NodeView &node) const override {
        const ValueView &x = node.input(0);
        return {{x.type, std::vector<int64_t>(x.shape.begin(), x.shape.begin() + x.rank)}};
    }
    void decompose(const NodeView &node, GraphSink &sink) const override {
        const uint32_t operands[] = {node.inputs[0], node.inputs[0]};
        sink.add_node(TN_OP_ADD, node.precision, operands, node.outputs);
    }
};

class TwicePlan : public Plan {
public:
    using Plan::Plan;

    void run_group(uint32_t group, const RunView &run) override {
        const NodeView &node = graph().node(group);  // nothing is fused: group k is node k
        const ValueView &x = node.input(0);
        const auto *from = run.at<const float>(x.index);
        auto *to = run.at<float>(node.output().index);
        if (node.op == TN_OP_RMS_NORM) {
            const auto *weight = node.has_input(1) ? run.at<const float>(node.inputs[1]) : nullptr;
            const float eps = node.params<tn_params_norm>().eps;
            for (int64_t r = 0; r < x.rows(); ++r) norm(from + r * x.last(), weight, to + r * x.last(), x.last(), eps);
        } else {
            for (int64_t i = 0; i < x.elements(); ++i) to[i] = from[i] + from[i];
        }
    }

private:
    static void norm(const float *x, const float *weight, float *y, int64_t n, float eps) {
        double sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += double{x[i]} * double{x[i]};
        const double factor = 1 / std::sqrt(sum / static_cast<double>(n) + double{eps});
        for (int64_t i = 0; i < n; ++i)
            y[i] = static_cast<float>(x[i] * factor * (weight != nullptr ? double{weight[i]} : 1));
    }
};

class TwiceDevice : public Device {
public:
    TwiceDevice(Adapter &adapter, const TwiceOp &op) : Device(adapter), op_(op) {
        add_buffer_type(std::make_unique<HostBufferType>(*this, "twice.host", 32));
    }

    Support support(const GraphView &graph, const NodeView &node) const override {
        const bool norm = node.op == TN_OP_RMS_NORM, own = op_.id() != 0 && node.op == op_.id();
        if (!norm && !own) return Support::no("only rms_norm and twice.twice");
        if (own && (node.inputs.size() != 1 || node.outputs.size() != 1))
            return Support::no("twice.twice has one operand");
        for (const auto &list : {node.inputs, node.outputs}) {
            for (uint32_t v : list) {
                if (v == TN_NONE) continue;
                const ValueView &value = graph.value(v);
                const BufferTypeView *type = graph.buffer_type_of(v);
                if (!value.is(TN_TYPE_ID_F32) || !value.is_contiguous())
                    return Support::no("an operand isn't contiguous f32");
                if (type != nullptr && !supports_buffer_type(*type))
                    return Support::no("the CPU can't read ", type->name);
            }
        }
        if (!node.input(0).same_shape(node.output())) return Support::no("shapes differ");
        if (norm && node.has_input(1) && node.input(1).elements() != node.input(0).last())
            return Support::no("the weight isn't [d]");
        return Support::yes();
    }
    bool supports_buffer_type(const BufferTypeView &type) const override { return type.is_plain_host(); }
    std::unique_ptr<Plan> prepare(std::shared_ptr<const GraphView> graph) override {
        return std::make_unique<TwicePlan>(*this, std::move(graph));
    }

private:
    const TwiceOp &op_;
};

class TwiceAdapter : public Adapter {
public:
    TwiceAdapter(Instance &instance, const TwiceOp &op)
        : Adapter(instance, {.name = "twice:0", .description = "Twice Inc. norm engine", .kind = TN_KIND_ACCELERATOR}),
          op_(op) {}
    Memory memory() const override { return {uint64_t{1} << 30, uint64_t{1} << 30}; }
    std::unique_ptr<Device> open(Options &) override { return std::make_unique<TwiceDevice>(*this, op_); }

private:
    const TwiceOp &op_;
};

class Twice : public Instance {
    void load(Registrar &registrar) override {
        const auto &op = static_cast<const TwiceOp &>(registrar.add(std::make_unique<TwiceOp>(*this)));
        registrar.add(std::make_unique<TwiceAdapter>(*this, op));
    }
};

}  // namespace

TENON_PLUGIN(Twice, "twice", "Twice Inc.", "1.0.0", "74776963-6500-4000-8000-000000000001", TN_PLUGIN_CLOSABLE)
