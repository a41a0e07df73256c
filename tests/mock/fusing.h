// Which nodes run as one group, and in which order: the answers of D34 to D37, and the tables that make them in time
// that grows with the graph's size.
#ifndef TENON_TESTS_MOCK_FUSING_H
#define TENON_TESTS_MOCK_FUSING_H

#include "faults.h"
#include "kernels.h"

namespace mock {

using namespace tenon::plugin;

/// For each number a list of numbers, side by side in one array.
class Lists {
public:
    /// visit(emit) calls emit(list, item) for every item, the same ones each time: it is called twice.
    template <class Visit>
    Lists(size_t lists, Visit &&visit) : begin_(lists + 1, 0) {
        visit([&](uint32_t list, uint32_t) { ++begin_[list + 1]; });
        for (size_t i = 0; i < lists; ++i) begin_[i + 1] += begin_[i];
        items_.resize(begin_[lists]);
        std::vector<uint32_t> next(begin_.begin(), begin_.end() - 1);
        visit([&](uint32_t list, uint32_t item) { items_[next[list]++] = item; });
    }
    std::span<const uint32_t> of(uint32_t list) const {
        return std::span(items_).subspan(begin_[list], begin_[list + 1] - begin_[list]);
    }

private:
    std::vector<uint32_t> begin_, items_;
};

/// Who uses which value.
class Uses {
public:
    explicit Uses(const GraphView &graph);

    /// Nodes that read exactly this value, in node order; one that reads it twice stands there twice.
    std::span<const uint32_t> readers(uint32_t value) const { return readers_.of(value); }
    /// Nodes that write bytes of a base, in node order.
    std::span<const uint32_t> writers(uint32_t base) const { return writers_.of(base); }
    bool is_viewed(uint32_t value) const { return viewed_[value]; }
    /// Nobody outside this graph's nodes can see it, and it shares bytes with nothing.
    bool is_private(const ValueView &v) const { return v.flags == 0 && v.view_of == TN_NONE && !viewed_[v.index]; }

private:
    Lists readers_, writers_;
    std::vector<bool> viewed_;
};

struct Fusion {
    struct Group {
        uint32_t begin = 0, end = 0;  // of order
        uint64_t unstored_bytes = 0;  // at the begin of its scratch
        uint64_t spare_bytes = 0;     // at the end: nobody's, but filled with rubbish
    };
    std::vector<uint32_t> order;  // all nodes, as they run
    std::vector<Group> groups;
    std::vector<uint64_t> unstored_at;  // per value, as in Memory
    std::vector<Plan::InPlace> in_place;

    std::span<const uint32_t> nodes(const Group &group) const {
        return std::span(order).subspan(group.begin, group.end - group.begin);
    }
};

/// alignment: of scratch, and of what lies in it.
Fusion fuse_nothing(const GraphView &graph);
Fusion fuse_patterns(const GraphView &graph, uint64_t alignment);
Fusion fuse_randomly(const GraphView &graph, uint64_t alignment, uint64_t seed);

/// Whether a node that writes `out` where it finds `in` reads each element before it overwrites it.
bool may_overwrite(const NodeView &node, const ValueView &in, const ValueView &out);

inline uint64_t round_up(uint64_t bytes, uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace mock
#endif
