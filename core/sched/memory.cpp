#include "sched/memory.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "sched/free_space.h"

namespace tenon {
namespace {

/// The intervals by rising `first`, with dense times 0 .. times - 1.
struct Problem {
    Problem() = default;
    Problem(Problem &&) = default;  // not copied: `items` may look at `owned`

    std::span<const Interval> items;
    LargeVector<uint32_t> ids;  // per item, its number in what the caller gave; empty: the same
    LargeVector<Interval> owned;
    uint32_t times = 0;
    uint64_t grain = 1;           // the smallest alignment
    bool whole_grains = true;     // all sizes are multiples of it
    uint64_t limit = UINT64_MAX;  // of a chunk

    uint32_t id(size_t item) const { return ids.empty() ? uint32_t(item) : ids[item]; }
    uint32_t last(const Interval &item) const { return std::max(item.first, std::min(item.last, times - 1)); }
    uint64_t alignment(const Interval &item) const { return std::max(item.alignment, grain); }
};

/// Times that are far apart become their ranks among all `first`s: whether two intervals overlap stays the same.
void make_times_dense(LargeVector<Interval> &intervals) {
    LargeVector<uint32_t> times;
    times.reserve(intervals.size());
    for (const Interval &interval : intervals) times.push_back(interval.first);
    std::ranges::sort(times);
    times.erase(std::unique(times.begin(), times.end()), times.end());
    auto rank = [&](auto position) { return uint32_t(position - times.begin()); };
    for (Interval &interval : intervals) {
        const uint32_t last = std::max(interval.first, interval.last);
        interval.first = rank(std::ranges::lower_bound(times, interval.first));
        interval.last = rank(std::ranges::upper_bound(times, last)) - 1;
    }
}

/// Sorts `problem.items` by `first`, stably, with one counter a time.
void sort_by_first(Problem &problem) {
    LargeVector<uint32_t> start(size_t(problem.times) + 1);
    for (const Interval &item : problem.items) ++start[item.first + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    LargeVector<Interval> sorted(problem.items.size());
    problem.ids.resize(problem.items.size());
    for (uint32_t i = 0; i < problem.items.size(); ++i) {
        const uint32_t to = start[problem.items[i].first]++;
        sorted[to] = problem.items[i];
        problem.ids[to] = i;
    }
    problem.owned = std::move(sorted);
    problem.items = problem.owned;
}

Problem make_problem(std::span<const Interval> intervals, uint64_t max_chunk_bytes) {
    Problem problem;
    if (max_chunk_bytes && max_chunk_bytes <= uint64_t(INT64_MAX)) problem.limit = max_chunk_bytes;
    problem.items = intervals;
    uint32_t latest = 0;
    uint64_t size_bits = 0, alignments = 0;
    bool sorted = true;
    for (const Interval &interval : intervals) {
        sorted &= interval.first >= latest;
        latest = std::max(latest, interval.first);
        if (interval.bytes) alignments |= interval.alignment;
        size_bits |= interval.bytes;
    }
    if (alignments) problem.grain = alignments & -alignments;
    problem.whole_grains = size_bits % problem.grain == 0;
    if (latest > 4 * uint64_t(intervals.size()) + 1024) {
        problem.owned.assign(intervals.begin(), intervals.end());
        make_times_dense(problem.owned);
        problem.items = problem.owned;
        latest = 0;
        for (const Interval &interval : problem.owned) latest = std::max(latest, interval.first);
    }
    problem.times = latest + 1;
    if (!sorted) sort_by_first(problem);
    return problem;
}

/// The same with time running backwards.
Problem mirrored(const Problem &problem) {
    Problem mirror;
    mirror.owned.resize(problem.items.size());
    for (size_t i = 0; i < problem.items.size(); ++i) {
        const Interval &item = problem.items[i];
        mirror.owned[problem.id(i)] = {item.bytes, item.alignment, problem.times - 1 - problem.last(item),
                                       problem.times - 1 - item.first};
    }
    mirror.items = mirror.owned;
    mirror.times = problem.times;
    mirror.grain = problem.grain;
    mirror.whole_grains = problem.whole_grains;
    mirror.limit = problem.limit;
    sort_by_first(mirror);
    return mirror;
}

/// The largest sum of live bytes, each size rounded up to `grain`.
uint64_t largest_live_sum(const Problem &problem, uint64_t grain) {
    LargeVector<uint64_t> dying(problem.times);  // bytes whose last time it is
    uint64_t live = 0, most = 0;
    uint32_t now = 0;
    for (const Interval &item : problem.items) {
        for (; now < item.first; ++now) live -= dying[now];
        const uint64_t bytes = round_up(item.bytes, grain);
        live += bytes;
        dying[problem.last(item)] += bytes;
        most = std::max(most, live);
    }
    return most;
}

/// Lets time go by: what has died is free before what begins is placed. Nothing if that needs `best` bytes or more.
std::optional<MemoryPlan> place_by_time(const Problem &problem, uint64_t expected, uint64_t best = UINT64_MAX) {
    MemoryPlan plan;
    plan.places.resize(problem.items.size());
    FreeSpace space(problem.grain, problem.limit, expected);
    LargeVector<uint32_t> dying(problem.times, FreeSpace::k_none);  // per time, the blocks that are free after it
    uint32_t now = 0;
    for (size_t i = 0; i < problem.items.size(); ++i) {
        const Interval &item = problem.items[i];
        if (item.bytes == 0) continue;
        for (; now < item.first; ++now) {
            for (uint32_t block = dying[now]; block != FreeSpace::k_none;) {
                const uint32_t next = space.link(block);
                space.give_back(block);
                block = next;
            }
        }
        const uint32_t last = problem.last(item);
        const uint32_t block = space.take(item.bytes, problem.alignment(item), last);
        space.link(block) = dying[last];
        dying[last] = block;
        plan.places[problem.id(i)] = space.place(block);
        if (space.bytes() >= best) return std::nullopt;
    }
    plan.chunk_bytes = space.chunk_bytes();
    plan.bytes = space.bytes();
    return plan;
}

/// Places intervals in any order, each at the lowest place that is free during its whole life.
///
/// Items are sorted by `first`, so those that overlap item i are: a stretch of items right after it, and the ones before
/// it that live at its start, which are listed once for all orders.
class PlaceInOrder {
public:
    explicit PlaceInOrder(const Problem &problem) : problem_(problem) {}

    /// Lists the pairs of items that live at once; false if there are more than `most`. Counts its `steps`.
    bool list_pairs(uint64_t most, uint64_t &steps) {
        struct Live {
            uint32_t item, last;
        };
        std::vector<Live> live;
        starts_.reserve(problem_.items.size() + 1);
        before_.reserve(std::min<uint64_t>(most, 2 * problem_.items.size()));
        for (uint32_t i = 0; i < problem_.items.size(); ++i) {
            const Interval &item = problem_.items[i];
            starts_.push_back(uint32_t(before_.size()));
            size_t kept = 0;
            for (const Live other : live) {
                if (other.last < item.first) continue;
                live[kept++] = other;
                before_.push_back(other.item);
            }
            steps = i + before_.size();
            if (before_.size() > most) return false;
            live.resize(kept);
            live.push_back({i, problem_.last(item)});
        }
        starts_.push_back(uint32_t(before_.size()));
        return true;
    }
    uint64_t pairs() const { return before_.size(); }

    /// The plan, or nothing if it needs `best` bytes or more.
    std::optional<MemoryPlan> place(std::span<const uint32_t> order, uint64_t best) {
        MemoryPlan plan;
        places_.assign(problem_.items.size(), {k_not_yet, 0});
        for (uint32_t i : order) {
            const Interval &item = problem_.items[i];
            if (item.bytes == 0) continue;
            gather(i);
            places_[i] = lowest(item);
            const uint32_t chunk = places_[i].chunk;
            const uint64_t end = places_[i].offset + item.bytes;
            if (chunk >= plan.chunk_bytes.size()) plan.chunk_bytes.push_back(0);
            if (end <= plan.chunk_bytes[chunk]) continue;
            plan.bytes += end - plan.chunk_bytes[chunk];
            plan.chunk_bytes[chunk] = end;
            if (plan.bytes >= best) return std::nullopt;
        }
        for (MemoryPlace &place : places_)
            if (place.chunk == k_not_yet) place = {};  // empty
        if (problem_.ids.empty()) {
            plan.places = std::move(places_);
        } else {
            plan.places.resize(places_.size());
            for (size_t i = 0; i < places_.size(); ++i) plan.places[problem_.id(i)] = places_[i];
        }
        return plan;
    }

private:
    static constexpr size_t k_few = 16;
    static constexpr uint32_t k_not_yet = UINT32_MAX;  // for a chunk
    struct Placed {
        uint32_t chunk;
        uint64_t offset, end;
    };

    /// The placed items that overlap item i, by place, into `around_`.
    void gather(uint32_t i) {
        auto less = [](const Placed &a, const Placed &b) {
            return a.chunk != b.chunk ? a.chunk < b.chunk : a.offset < b.offset;
        };
        around_.clear();
        auto look = [&](uint32_t other) {
            const MemoryPlace &place = places_[other];
            if (place.chunk == k_not_yet) return;
            const Placed there = {place.chunk, place.offset, place.offset + problem_.items[other].bytes};
            around_.push_back(there);
            if (around_.size() > k_few) return;
            size_t to = around_.size() - 1;  // few, as usual: sorted as they come
            for (; to > 0 && less(there, around_[to - 1]); --to) around_[to] = around_[to - 1];
            around_[to] = there;
        };
        for (uint32_t k = starts_[i]; k < starts_[i + 1]; ++k) look(before_[k]);
        const uint32_t last = problem_.last(problem_.items[i]);
        for (uint32_t k = i + 1; k < problem_.items.size() && problem_.items[k].first <= last; ++k) look(k);
        if (around_.size() > k_few) std::ranges::sort(around_, less);
    }

    /// The lowest chunk, and the lowest offset in it, that leaves `around_` alone.
    MemoryPlace lowest(const Interval &item) const {
        MemoryPlace to;
        for (const Placed &there : around_) {
            if (there.chunk > to.chunk) {  // behind all that is in to.chunk, or in one where nothing is
                if (to.offset + item.bytes <= problem_.limit) return to;
                to = {to.chunk + 1, 0};
                if (there.chunk > to.chunk) return to;
            }
            if (there.offset >= to.offset + item.bytes) return to;
            to.offset = std::max(to.offset, round_up(there.end, problem_.alignment(item)));
        }
        if (to.offset + item.bytes > problem_.limit) return {to.chunk + 1, 0};
        return to;
    }

    const Problem &problem_;
    // before_[starts_[i]] up to before_[starts_[i + 1]]: the earlier items that live when item i begins.
    LargeVector<uint32_t> before_, starts_;
    LargeVector<MemoryPlace> places_;  // per item
    std::vector<Placed> around_;
};

/// Item numbers by falling size class of `weight`, window by window: so that what lies together is placed together, and
/// a large graph's order costs a small graph's time for each node.
template <class Weight>
LargeVector<uint32_t> falling_order(std::span<const Interval> items, Weight &&weight) {
    constexpr uint32_t window = 4096;
    std::vector<uint32_t> start(k_size_classes + 1);
    LargeVector<uint32_t> order(items.size());
    auto place = [&](uint32_t i) { return k_size_classes - 1 - size_class(weight(items[i])); };
    for (uint32_t from = 0; from < items.size(); from += window) {
        const uint32_t to = uint32_t(std::min<size_t>(items.size(), size_t(from) + window));
        std::ranges::fill(start, 0);
        for (uint32_t i = from; i < to; ++i) ++start[place(i) + 1];
        std::partial_sum(start.begin(), start.end(), start.begin());
        for (uint32_t i = from; i < to; ++i) order[from + start[place(i)]++] = i;
    }
    return order;
}

/// The effort for other orders, in pairs of intervals looked at: what keeps it to the cost of one or two sweeps.
constexpr uint64_t k_steps_per_interval = 9, k_least_steps = 8192;
constexpr uint64_t k_sweep_steps_per_interval = 6;  // a sweep's cost in the same unit

/// What is tried when the sweep has missed the bound, the most promising first; each only if it fits into what is left
/// of the effort.
class OtherOrders {
public:
    OtherOrders(const Problem &problem, uint64_t expected, MemoryPlan &best)
        : problem_(problem),
          expected_(expected),
          best_(best),
          steps_left_(std::max(k_steps_per_interval * problem.items.size(), k_least_steps)),
          in_order_(problem) {}

    void run() {
        const uint64_t n = problem_.items.size();
        // Pairs are listed if that and one order, which looks at each pair twice, can be afforded.
        const uint64_t most_pairs = steps_left_ > 2 * n ? (steps_left_ - 2 * n) / 3 : 0;
        uint64_t listing_steps = 0;
        if (in_order_.list_pairs(most_pairs, listing_steps)) order_steps_ = n + 2 * in_order_.pairs();
        steps_left_ -= std::min(steps_left_, listing_steps);
        auto length = [&](const Interval &item) { return uint64_t(problem_.last(item) - item.first) + 1; };
        attempt([](const Interval &item) { return item.bytes; });
        if (!done() && afford(k_sweep_steps_per_interval * n))
            keep(place_by_time(mirrored(problem_), expected_, best_.bytes));
        attempt([&](const Interval &item) {
            const uint64_t times = length(item);
            return item.bytes > UINT64_MAX / times ? UINT64_MAX : item.bytes * times;
        });
        attempt(length);
    }

private:
    bool done() const { return round_up(best_.bytes, problem_.grain) <= expected_; }

    bool afford(uint64_t steps) {
        if (steps > steps_left_) return false;
        steps_left_ -= steps;
        return true;
    }

    void keep(std::optional<MemoryPlan> better) {
        if (better) best_ = std::move(*better);
    }

    template <class Weight>
    void attempt(Weight &&weight) {
        if (done() || !afford(order_steps_)) return;
        keep(in_order_.place(falling_order(problem_.items, weight), best_.bytes));
    }

    const Problem &problem_;
    const uint64_t expected_;
    MemoryPlan &best_;
    uint64_t steps_left_;
    uint64_t order_steps_ = UINT64_MAX;  // of one order
    PlaceInOrder in_order_;
};

}  // namespace

MemoryPlan plan_memory(std::span<const Interval> intervals, uint64_t max_chunk_bytes) {
    const Problem problem = make_problem(intervals, max_chunk_bytes);
    const uint64_t lower_bound = largest_live_sum(problem, 1);
    // Blocks are whole grains: no plan whose blocks are can do with less than this.
    const uint64_t expected = problem.whole_grains ? lower_bound : largest_live_sum(problem, problem.grain);
    MemoryPlan best = *place_by_time(problem, expected);  // there is no best yet that it could miss
    if (round_up(best.bytes, problem.grain) > expected) OtherOrders(problem, expected, best).run();
    best.lower_bound_bytes = lower_bound;
    return best;
}

}  // namespace tenon
