#include "sched/areas.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace tenon {

void Areas::expect(std::span<const Assignment> placed) {
    std::vector<size_t> counts(areas_.size());
    for (const Assignment &value : placed)
        if (value.device < counts.size()) ++counts[value.device];
    for (uint32_t device = 0; device < counts.size(); ++device) {
        Area &arena = area(Storage::Kind::arena, device);
        arena.intervals.reserve(counts[device]);
        arena.offers.reserve(counts[device]);
    }
}

Result<Storage> Areas::add(Storage::Kind kind, uint32_t device, uint64_t bytes, std::string_view name) {
    const BufferType &type = devices_.types[device];
    if (type.max_bytes() && bytes > type.max_bytes())
        return Status::out_of_memory(fmt::format("'{}' takes {} bytes in memory of {}, whose buffers hold at most {}",
                                                 name, bytes, type.name(), type.max_bytes()));
    Area &to = area(kind, device);
    Interval interval{bytes, type.alignment(), k_to_the_end, 0};  // no life yet
    if (kind == Storage::Kind::constant) interval.first = 0, interval.last = k_to_the_end;
    to.intervals.push_back(interval);
    return Storage{kind, device, uint32_t(to.intervals.size() - 1)};
}

void Areas::touch(const Storage &storage, uint32_t time) {
    if (!storage.in_area()) return;
    Interval &interval = area(storage.kind, storage.device).intervals[storage.index];
    interval.first = std::min(interval.first, time);
    interval.last = std::max(interval.last, time);
}

void Areas::offer(const InPlaceOffer &offer) {
    const Storage &out = offer.output, &in = offer.input;
    if (!out.in_area() || out.kind != in.kind || out.device != in.device || out.index == in.index) return;
    area(out.kind, out.device).offers.push_back({out.index, in.index, offer.time});
}

void Areas::accept(Area &there, const Offer &offer) {
    if (there.lies_in.empty()) {
        there.lies_in.resize(there.intervals.size());
        std::iota(there.lies_in.begin(), there.lies_in.end(), 0u);
        there.given.resize(there.intervals.size());
    }
    const uint32_t root = there.lies_in[offer.input];
    Interval &place = there.intervals[root], &output = there.intervals[offer.output];
    const bool ends_there = there.intervals[offer.input].last == offer.time && place.last == offer.time;
    if (!ends_there || output.first != offer.time || output.bytes > place.bytes || root == offer.output ||
        there.given[offer.input])
        return;
    there.given[offer.input] = true;
    place.last = output.last;
    there.lies_in[offer.output] = root;
    output.bytes = 0;
}

Status Areas::plan_area(Area &there, uint32_t device) {
    // A chain of values in one place grows by its end: the earlier offers first.
    const auto earlier = [](const Offer &a, const Offer &b) { return a.time < b.time; };
    if (!std::ranges::is_sorted(there.offers, earlier)) std::ranges::stable_sort(there.offers, earlier);
    for (const Offer &offer : there.offers) accept(there, offer);
    std::optional<uint64_t> sum = 0;  // no place lies behind it, so that the planner needs no checks of its own
    for (Interval &interval : there.intervals) {
        if (interval.first > interval.last) interval.first = interval.last = 0, interval.bytes = 0;  // never used
        if (sum && (sum = align_up(*sum, interval.alignment))) sum = tenon::add(*sum, interval.bytes);
    }
    if (!sum || *sum > uint64_t(INT64_MAX))
        return Status::out_of_memory(
            fmt::format("the graph's values on {} are larger than any address", devices_.list[device]->name()));
    there.plan = plan_memory({there.intervals.data(), there.intervals.size()}, devices_.types[device].max_bytes());
    // An empty tensor has a place too.
    if (there.plan.chunk_bytes.empty() && !there.intervals.empty()) there.plan.chunk_bytes.push_back(0);
    return {};
}

Status Areas::plan() {
    for (uint32_t device = 0; device < areas_.size(); ++device)
        for (Area &there : areas_[device]) TENON_TRY(plan_area(there, device));
    return {};
}

MemoryPlace Areas::place(const Storage &storage) const {
    const Area &there = area(storage.kind, storage.device);
    return there.plan.places[there.lies_in.empty() ? storage.index : there.lies_in[storage.index]];
}

MemoryArea Areas::summary(Storage::Kind kind, uint32_t device) const {
    const MemoryPlan &plan = area(kind, device).plan;
    return {plan.bytes, plan.lower_bound_bytes, uint32_t(plan.chunk_bytes.size())};
}

}  // namespace tenon
