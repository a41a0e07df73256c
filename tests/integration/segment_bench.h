// A segment on one device without the scheduler: its graph as plugins see it, placed and bound by hand, so that tests can
// place wrongly.
#pragma once

#include <deque>

#include "graph_runner.h"

namespace tenon::testing {

/// The value in it; a failure ends the test.
template <class T>
T got(Result<T> result) {
    REQUIRE_MESSAGE(result.ok(), result.status().message());
    return *std::move(result);
}

/// A segment's graph as plugins see it, of values and nodes, without the host's scheduler.
class SegmentGraph {
public:
    uint32_t value(std::string name, Shape shape, uint32_t flags = 0, DType type = DType::f32) {
        names_.push_back(std::move(name));
        values_.push_back(describe(type, shape, names_.back().c_str()));
        values_.back().flags = flags;
        return uint32_t(values_.size() - 1);
    }
    /// Shares a base's bytes from `offset` on, with any strides.
    uint32_t view(uint32_t base, Shape shape, std::vector<int64_t> strides, uint64_t offset = 0) {
        const uint32_t v = value("view of " + names_[base], shape, values_[base].flags & ~TN_VALUE_OBSERVED);
        values_[v].view_of = base;
        values_[v].offset = offset;
        std::ranges::copy(strides, values_[v].stride_bytes);
        return v;
    }
    void node(uint32_t op, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
        tn_node node{};
        node.struct_size = TN_SIZE_NODE;
        node.op = op;
        node.precision = TN_PRECISION_EXACT;
        node.inputs = operands_.emplace_back(std::move(inputs)).data();
        node.input_count = uint32_t(operands_.back().size());
        node.outputs = operands_.emplace_back(std::move(outputs)).data();
        node.output_count = uint32_t(operands_.back().size());
        nodes_.push_back(node);
    }
    const tn_value &operator[](uint32_t v) const { return values_[v]; }
    size_t node_count() const { return nodes_.size(); }
    size_t value_count() const { return values_.size(); }
    tn_graph view() const {
        tn_graph graph{};
        graph.struct_size = TN_SIZE_GRAPH;
        graph.values = values_.data(), graph.value_count = values_.size(), graph.value_stride = sizeof(tn_value);
        graph.nodes = nodes_.data(), graph.node_count = nodes_.size(), graph.node_stride = sizeof(tn_node);
        return graph;
    }

private:
    std::deque<std::string> names_;
    std::vector<tn_value> values_;
    std::vector<tn_node> nodes_;
    std::deque<std::vector<uint32_t>> operands_;
};

/// An opened device with a buffer and a stream.
struct Bench {
    std::shared_ptr<Registry> registry;
    std::shared_ptr<Device> device;
    std::shared_ptr<Buffer> buffer;
    std::unique_ptr<Stream> stream;

    explicit Bench(const std::string &options, uint64_t bytes = 1 << 16, std::shared_ptr<Registry> in = {})
        : registry(in ? std::move(in) : make_registry()),
          device(got(registry->open(options))[0]),
          buffer(got(device->default_buffer_type().alloc(bytes, Usage::any))),
          stream(got(Stream::create(device))) {}

    std::unique_ptr<Plan> prepare(const SegmentGraph &graph) const { return got(Plan::prepare(device, graph.view())); }

    /// One binding; scratch behind all values unless a place is given.
    Status place(Plan &plan, const std::vector<uint64_t> &offsets, uint64_t scratch_at = 1 << 15) const {
        std::vector<tn_place> values, scratch;
        for (uint64_t offset : offsets) values.push_back({TN_SIZE_PLACE, nullptr, offset, 0, 0});
        for (uint64_t bytes : plan.group_scratch()) {
            scratch.push_back({TN_SIZE_PLACE, nullptr, scratch_at, bytes ? 0 : TN_NONE, 0});
        }
        tn_placement placement{};
        placement.struct_size = TN_SIZE_PLACEMENT;
        placement.values = values.data(), placement.value_count = values.size();
        placement.scratch = scratch.data(), placement.scratch_count = scratch.size();
        placement.value_stride = placement.scratch_stride = sizeof(tn_place);
        placement.binding_count = 1;
        return plan.place(placement);
    }
    Status bind(Plan &plan) const {
        tn_binding binding{};
        binding.struct_size = TN_SIZE_BINDING;
        binding.buffer = buffer->handle();
        binding.bytes = buffer->bytes();
        tn_bind bind{};
        bind.struct_size = TN_SIZE_BIND;
        bind.bindings = &binding, bind.binding_count = 1, bind.binding_stride = sizeof(tn_binding);
        return plan.bind(bind);
    }
    std::unique_ptr<Plan> ready(const SegmentGraph &graph, const std::vector<uint64_t> &offsets,
                                uint64_t scratch_at = 1 << 15) const {
        auto plan = prepare(graph);
        require_ok(place(*plan, offsets, scratch_at));
        require_ok(bind(*plan));
        return plan;
    }
    Status run(Plan &plan, uint64_t token = 0) {
        TENON_TRY(plan.run(*stream, 0, token));
        return stream->synchronize();
    }
    /// A tensor of this name and shape at an offset of the buffer.
    static tn_value at(const tn_value &like, uint64_t offset) {
        tn_value value = like;
        value.view_of = TN_NONE, value.flags = 0, value.offset = offset;
        return value;
    }
    Status set(const tn_value &like, uint64_t offset, const std::vector<float> &numbers) {
        return buffer->set(at(like, offset), 0, numbers.data(), numbers.size() * sizeof(float));
    }
    std::vector<float> get(const tn_value &like, uint64_t offset, size_t count) {
        std::vector<float> numbers(count);
        require_ok(buffer->get(at(like, offset), 0, numbers.data(), count * sizeof(float)));
        return numbers;
    }
};

}  // namespace tenon::testing
