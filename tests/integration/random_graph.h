// Random graphs for property tests: ops with one and several outputs, views, changes in place, states; and how their
// nodes may be spread over devices.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "graph_runner.h"

namespace tenon::testing {

/// What must stay together: a state and all that touches it; a value that is changed in place, with its maker and all
/// who change it. Anything else may go anywhere.
class RandomGraph {
public:
    RandomGraph(uint32_t seed, uint32_t nodes) : random_(seed) {
        builder_.set_precision(Precision::exact);
        for (int i = 0; i < 2; ++i)
            values_.push_back({builder_.input(fmt::format("in{}", i), DType::f32, {k_rows, k_width}), k_free});
        row_ = builder_.input("row", DType::i32, {1});
        state_ = {builder_.state("cache", DType::f32, {k_rows, 1, k_width}), new_family()};
        while (families_.size() < nodes) add_node();
        // What nobody reads, and a few others, among them a view.
        const Entry last = values_.back();
        builder_.output(last.id);
        for (size_t i = 0; i + 1 < values_.size(); ++i)
            if (below(12) == 0 && builder_.value(values_[i].id).producer != k_no_value) builder_.output(values_[i].id);
        builder_.output(builder_.slice(last.id, 0, 1, 2));
        auto made = std::move(builder_).finish();
        REQUIRE_MESSAGE(made.ok(), made.status().message());
        graph_.push_back(*std::move(made));
    }

    const Graph &graph() const { return graph_[0]; }

    /// Pins for devices prefix:0 to prefix:(count - 1), in stretches of about `stretch` nodes; `free_percent` of the
    /// stretches are left to the scheduler. A family has one device.
    std::vector<Pin> pins(const std::string &prefix, uint32_t count, uint32_t stretch, uint32_t free_percent) {
        std::vector<uint32_t> of_family(family_count_);
        for (uint32_t &device : of_family) device = below(count);
        std::vector<std::string> names(count);
        uint32_t device = 0;
        bool free = false;
        for (size_t node = 0; node < families_.size(); ++node) {
            if (below(stretch) == 0) device = below(count), free = below(100) < free_percent;
            const uint32_t family = families_[node];
            if (free && family == k_free) continue;
            std::string &list = names[family == k_free ? device : of_family[family]];
            list += fmt::format("{}{}", list.empty() ? "" : "|", std::string_view(graph().nodes()[node].name));
        }
        std::vector<Pin> pins;
        for (uint32_t d = 0; d < count; ++d)
            if (!names[d].empty()) pins.push_back({fmt::format("^(?:{})$", names[d]), fmt::format("{}:{}", prefix, d)});
        return pins;
    }

    /// Weights: the same for all runs.
    Data weights(uint32_t seed) const {
        Data data;
        for (const Value &value : graph().values())
            if (value.flags & TN_VALUE_WEIGHT && value.view_of == k_no_value)
                data[value.name] = random_floats(size_t(*value.shape.elements()), ++seed, 0.3f);
        return data;
    }
    static Data inputs(uint32_t seed) {
        return {{"in0", random_floats(size_t(k_rows * k_width), seed * 3)},
                {"in1", random_floats(size_t(k_rows * k_width), seed * 3 + 1)},
                {"row", to_bytes<int32_t>({int32_t(seed % k_rows)})}};
    }

private:
    static constexpr int64_t k_rows = 4, k_width = 8;
    static constexpr uint32_t k_free = UINT32_MAX;
    /// f32 [rows, width], and the family that it must stay with if it is changed.
    struct Entry {
        ValueId id;
        uint32_t family;
    };

    uint32_t below(uint32_t limit) { return random_() % limit; }
    uint32_t new_family() { return family_count_++; }
    /// Mostly what is near, so that values have lifetimes of all lengths.
    const Entry &any() {
        const size_t back =
            below(4) == 0 ? below(uint32_t(values_.size())) : below(uint32_t(std::min<size_t>(values_.size(), 6)));
        return values_[values_.size() - 1 - back];
    }
    std::string name() const { return fmt::format("n{}", families_.size()); }
    void made(ValueId id, uint32_t family = k_free) {
        families_.push_back(family);
        values_.push_back({id, family});
    }
    /// Keeps numbers from growing; [rows, width] again.
    ValueId unary(ValueId x) {
        static constexpr uint32_t ops[] = {TN_OP_TANH, TN_OP_NEG, TN_OP_ABS, TN_OP_SILU, TN_OP_RELU, TN_OP_SIGMOID};
        return builder_.node(ops[below(std::size(ops))], {x}, {}, name());
    }

    void add_node() {
        switch (below(10)) {
            case 0:
            case 1: return made(unary(any().id));
            case 2:
            case 3: {
                static constexpr uint32_t ops[] = {TN_OP_ADD, TN_OP_SUB, TN_OP_MUL, TN_OP_MAX, TN_OP_MIN};
                const ValueId a = any().id, b = any().id;
                made(builder_.node(ops[below(std::size(ops))], {a, b}, {}, name()));
                return made(builder_.node(TN_OP_TANH, {values_.back().id}, {}, name()));
            }
            case 4: {
                const ValueId w = builder_.weight(fmt::format("w{}", families_.size()), DType::f32, {k_width, k_width});
                return made(builder_.linear(any().id, w, k_no_value, name()));
            }
            case 5: {
                const ValueId w = builder_.weight(fmt::format("w{}", families_.size()), DType::f32, {k_width});
                return made(builder_.rms_norm(any().id, w, 1e-5f, name()));
            }
            case 6: return add_concat();
            case 7: return add_two_outputs();
            case 8: return add_change();
            default: return add_state();
        }
    }

    /// Through views of both kinds: a stretch of rows, and rows turned into columns.
    void add_concat() {
        tn_params_concat along{};
        along.struct_size = TN_SIZE_PARAMS_CONCAT;
        const ValueId a = builder_.slice(any().id, 0, 0, 2);
        const uint32_t order[] = {1, 0};
        const ValueId turned = builder_.permute(builder_.reshape(any().id, {k_width, k_rows}), order);
        const ValueId b = builder_.slice(turned, 0, 1, 2);
        made(builder_.node(TN_OP_CONCAT, {a, b}, ParamBlob::of(along), name()));
    }

    /// Who are the three largest of each row, and how large: both outputs have readers.
    void add_two_outputs() {
        tn_params_route params{};
        params.struct_size = TN_SIZE_PARAMS_ROUTE;
        params.k = 3;
        params.scoring = TN_ROUTE_SOFTMAX;
        const ValueId x = any().id;
        const auto both = builder_.nodes(TN_OP_ROUTE, {x}, ParamBlob::of(params), name());
        families_.push_back(k_free);
        REQUIRE(both.size() == 2);
        const ValueId found = builder_.node(TN_OP_GATHER_LAST, {any().id, both[0]}, {}, name());
        families_.push_back(k_free);
        const ValueId sum = builder_.add(found, both[1], name());
        families_.push_back(k_free);
        const ValueId column = builder_.broadcast(builder_.slice(sum, 1, 0, 1), {k_rows, k_width});
        made(builder_.mul(any().id, column, name()));
        made(builder_.node(TN_OP_TANH, {values_.back().id}, {}, name()));
    }

    /// A value of its own is made, read, changed, and read again.
    void add_change() {
        const uint32_t family = new_family();
        const ValueId rows = builder_.slice(any().id, 0, below(k_rows), 1), from = any().id;
        const ValueId before = builder_.node(TN_OP_NEG, {from}, {}, name());
        families_.push_back(family);
        made(builder_.node(TN_OP_ABS, {before}, {}, name()));
        const ValueId after = builder_.node(TN_OP_SCATTER_ROWS, {before, rows, row_}, {}, name());
        families_.push_back(family);
        made(builder_.node(TN_OP_TANH, {after}, {}, name()));
    }

    /// Keys and values of a layer, as it were: written by each run, read by this and later ones.
    void add_state() {
        const ValueId rows = builder_.reshape(builder_.slice(any().id, 0, below(k_rows), 1), {1, 1, k_width});
        state_.id = builder_.kv_append(state_.id, rows, row_, name());
        families_.push_back(state_.family);
        const ValueId read = builder_.node(TN_OP_TANH, {builder_.reshape(state_.id, {k_rows, k_width})}, {}, name());
        made(read, state_.family);
    }

    std::mt19937 random_;
    GraphBuilder builder_;
    std::vector<Entry> values_;
    Entry state_{};
    ValueId row_ = k_no_value;
    uint32_t family_count_ = 0;
    std::vector<uint32_t> families_;  // per node
    std::vector<Graph> graph_;        // one
};

}  // namespace tenon::testing
