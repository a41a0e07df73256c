// A prepared segment with its memory: offsets planned by execution groups as the ABI says, buffers, binds. Small and
// slow.
#ifndef TENON_TESTS_ABI_SEGMENT_H
#define TENON_TESTS_ABI_SEGMENT_H

#include <algorithm>

#include "host.h"

namespace abi_test {

/// Everything that isn't flagged or viewed lies in an arena (binding 1), planned by lifetime; the rest in its own
/// buffer (binding 0), one after the other.
class Segment {
public:
    Segment(const OpenDevice &device, GraphBuilder &graph) : device(device), p(device.p), graph_(graph) {
        REQUIRE_MESSAGE(p.plan->prepare(device.handle, graph.get(), &plan) == TN_OK, last_error());
        groups =
            list<tn_group>([&](uint64_t *n, tn_group *out) { return p.plan->groups(plan, n, sizeof(tn_group), out); });
        node_groups = list<uint32_t>([&](uint64_t *n, uint32_t *out) { return p.plan->node_groups(plan, n, out); });
        unstored = list<uint32_t>([&](uint64_t *n, uint32_t *out) { return p.plan->unstored(plan, n, out); });
        pairs = list<tn_in_place>(
            [&](uint64_t *n, tn_in_place *out) { return p.plan->in_place(plan, n, sizeof(tn_in_place), out); });
        plan_memory();
        place_ = make<tn_placement>(TN_SIZE_PLACEMENT);
        place_.values = places.data(), place_.value_count = places.size(), place_.value_stride = sizeof(tn_place);
        place_.scratch = scratch.data(), place_.scratch_count = scratch.size(),
        place_.scratch_stride = sizeof(tn_place);
        place_.binding_count = 2;
    }
    Segment(const Segment &) = delete;
    Segment &operator=(const Segment &) = delete;
    ~Segment() {
        p.plan->destroy(plan);
        for (tn_buffer b : buffers) p.buffer->destroy(b);
    }

    tn_status place() { return p.plan->place(plan, &place_); }
    /// Fresh buffers for a set: [2 * set] holds the flagged values, [2 * set + 1] the arena.
    tn_status bind(uint32_t set, int64_t shrink = 0) {
        if (buffers.size() < 2 * (set + 1)) {
            buffers.push_back(device.alloc(fixed_bytes));
            buffers.push_back(device.alloc(arena_bytes));
        }
        tn_binding bindings[2];
        for (int i = 0; i < 2; ++i) {
            bindings[i] = make<tn_binding>(TN_SIZE_BINDING);
            bindings[i].buffer = buffers[2 * set + i];
            bindings[i].bytes = (i == 0 ? fixed_bytes : arena_bytes) - static_cast<uint64_t>(i == 0 ? shrink : 0);
        }
        auto bind = make<tn_bind>(TN_SIZE_BIND);
        bind.bindings = bindings, bind.binding_count = 2, bind.binding_stride = sizeof(tn_binding), bind.set = set;
        return p.plan->bind(plan, &bind);
    }
    void ready(uint32_t sets = 1) {
        REQUIRE(place() == TN_OK);
        for (uint32_t s = 0; s < sets; ++s) REQUIRE_MESSAGE(bind(s) == TN_OK, last_error());
    }
    tn_status run(tn_stream stream, uint32_t set = 0, uint64_t token = 0) const {
        auto run = make<tn_run>(TN_SIZE_RUN);
        run.set = set, run.cancel_token = token;
        return p.plan->run(plan, stream, &run);
    }
    /// A flagged value as buffer calls want it.
    tn_value in_buffer(uint32_t v) const {
        tn_value t = graph_.values[v];
        t.offset = places[v].offset;
        t.view_of = TN_NONE;
        return t;
    }
    tn_buffer buffer(uint32_t set = 0) const { return buffers[2 * set]; }
    void write(uint32_t v, const std::vector<float> &data, uint32_t set = 0) const {
        const tn_value t = in_buffer(v);
        REQUIRE_MESSAGE(p.buffer->set(buffer(set), &t, 0, data.data(), data.size() * 4) == TN_OK, last_error());
    }
    std::vector<float> read(uint32_t v, size_t count, uint32_t set = 0) const {
        std::vector<float> data(count);
        const tn_value t = in_buffer(v);
        REQUIRE_MESSAGE(p.buffer->get(buffer(set), &t, 0, data.data(), count * 4) == TN_OK, last_error());
        return data;
    }

    const OpenDevice &device;
    const tn_plugin &p;
    tn_plan plan = nullptr;
    std::vector<tn_group> groups;
    std::vector<uint32_t> node_groups, unstored;
    std::vector<tn_in_place> pairs;
    std::vector<tn_place> places, scratch;
    std::vector<tn_buffer> buffers;
    uint64_t fixed_bytes = 0, arena_bytes = 0;
    int taken_offers = 0;

private:
    struct Piece {
        uint64_t offset, bytes;
        uint32_t first, last;  // groups
    };

    static uint64_t bytes_of(const tn_value &v) {
        uint64_t end = 4;
        for (uint32_t i = 0; i < v.rank; ++i) {
            if (v.shape[i] == 0) return 0;
            end += static_cast<uint64_t>(v.shape[i] - 1) * static_cast<uint64_t>(v.stride_bytes[i]);
        }
        return (end + 255) / 256 * 256;
    }
    uint32_t base(uint32_t v) const { return graph_.values[v].view_of == TN_NONE ? v : graph_.values[v].view_of; }
    bool is_fixed(uint32_t v) const { return graph_.values[base(v)].flags != 0; }

    /// First fit among what lives at the same time.
    uint64_t find_room(uint64_t bytes, uint32_t first, uint32_t last) {
        uint64_t at = 0;
        for (bool again = true; again;) {
            again = false;
            for (const Piece &piece : pieces_) {
                const bool meets = piece.first <= last && first <= piece.last;
                if (meets && at < piece.offset + piece.bytes && piece.offset < at + bytes)
                    at = piece.offset + piece.bytes, again = true;
            }
        }
        pieces_.push_back({at, bytes, first, last});
        arena_bytes = std::max(arena_bytes, at + bytes);
        return at;
    }

    void plan_memory() {
        const size_t n = graph_.values.size();
        places.assign(n, make<tn_place>(TN_SIZE_PLACE));
        std::vector<uint32_t> first(n, TN_NONE), last(n, 0);
        for (size_t i = 0; i < graph_.nodes.size(); ++i) {
            const tn_node &node = graph_.nodes[i];
            auto touch = [&](uint32_t v) {
                if (v == TN_NONE) return;
                first[base(v)] = std::min(first[base(v)], node_groups[i]);
                last[base(v)] = std::max(last[base(v)], node_groups[i]);
            };
            std::for_each(node.inputs, node.inputs + node.input_count, touch);
            std::for_each(node.outputs, node.outputs + node.output_count, touch);
        }
        std::vector<uint32_t> order;
        for (uint32_t v = 0; v < n; ++v) {
            places[v].binding = TN_NONE;
            if (base(v) == v) order.push_back(v);
        }
        std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return first[a] < first[b]; });
        for (uint32_t v : order) place_base(v, first, last);
        for (uint32_t v = 0; v < n; ++v) {
            if (base(v) == v) continue;
            places[v] = places[base(v)];
            places[v].offset += graph_.values[v].offset;
        }
        for (uint32_t g = 0; g < groups.size(); ++g) {
            scratch.push_back(make<tn_place>(TN_SIZE_PLACE));
            scratch.back().binding = groups[g].scratch_bytes == 0 ? TN_NONE : 1;
            const uint64_t bytes = (groups[g].scratch_bytes + 255) / 256 * 256;
            if (bytes != 0) scratch.back().offset = find_room(bytes, g, g);
        }
    }

    void place_base(uint32_t v, const std::vector<uint32_t> &first, const std::vector<uint32_t> &last) {
        const uint64_t bytes = bytes_of(graph_.values[v]);
        if (std::find(unstored.begin(), unstored.end(), v) != unstored.end()) return;
        places[v].binding = is_fixed(v) ? 0 : 1;
        if (is_fixed(v)) {
            places[v].offset = fixed_bytes;
            fixed_bytes += bytes;
            return;
        }
        if (first[v] == TN_NONE) return void(places[v].binding = TN_NONE);
        for (const tn_in_place &pair : pairs) {
            if (pair.output != v || places[pair.input].binding != 1 || last[pair.input] != first[v]) continue;
            places[v].offset = places[pair.input].offset;
            pieces_.push_back({places[v].offset, bytes, first[v], last[v]});
            ++taken_offers;
            return;
        }
        places[v].offset = find_room(bytes, first[v], last[v]);
    }

    GraphBuilder &graph_;
    tn_placement place_{};
    std::vector<Piece> pieces_;
};

}  // namespace abi_test
#endif
