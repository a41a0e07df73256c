// Weights and states by groups: the last ones on the first device, as many as fit, then the next device.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/no_throw.h"
#include "registry/plugin.h"
#include "sched/homes.h"
#include "sched/session_impl.h"

namespace tenon {
namespace {

constexpr uint64_t k_unlimited = std::numeric_limits<uint64_t>::max();

/// What a device's adapter says is free now, without a margin for what allocation adds.
uint64_t free_bytes(const Device &device) {
    for (const AdapterInfo &adapter : device.plugin()->adapters())
        if (adapter.name == device.name() && adapter.total_bytes > 0)
            return adapter.free_bytes - adapter.free_bytes / 32;
    return k_unlimited;
}

class Filling {
public:
    Filling(const Graph &graph, const DeviceSet &devices, const Offload &offload)
        : graph_(graph), devices_(devices), offload_(offload), fallback_(devices.count() - 1) {}

    Status ask(std::span<const Pin> pins) {
        TENON_ASSIGN(const Homes homes, Homes::ask(graph_, devices_, pins));
        for (ValueId id = 0; id < graph_.values().size(); ++id) {
            if (!is_tensor(graph_.values()[id])) continue;
            Movable tensor{offload_.group_of[id], {}, {}};
            const Value &value = graph_.values()[id];
            const std::string name(value.name);
            for (uint32_t first = 0; first <= fallback_; ++first) {
                TENON_ASSIGN(TensorHome home, homes.choose(id, first));
                TENON_ASSIGN(const uint64_t bytes,
                             home.buffer_type.tensor_bytes(describe(value.type, value.shape, name.c_str())));
                tensor.homes.push_back(std::move(home));
                tensor.bytes.push_back(bytes);
            }
            tensors_.push_back(std::move(tensor));
        }
        std::ranges::stable_sort(tensors_, {}, &Movable::group);
        return {};
    }

    /// `room` per device. Homes in the order of values.
    Result<std::vector<TensorHome>> fill(const std::vector<uint64_t> &room) const {
        std::vector<std::vector<uint64_t>> more(fallback_ + 1, std::vector<uint64_t>(fallback_ + 1));
        std::vector<uint64_t> used(fallback_ + 1);
        std::vector<TensorHome> homes;
        uint32_t first = 0;
        for (auto end = tensors_.end(); end != tensors_.begin();) {
            const uint32_t group = (end - 1)->group;
            const auto begin = std::ranges::lower_bound(tensors_.begin(), end, group, {}, &Movable::group);
            const uint64_t number = uint64_t(tensors_.back().group) - group + 1;  // counted from the last one
            const std::ranges::subrange members(begin, end);
            end = begin;
            const bool is_wanted = !offload_.last_groups || number <= *offload_.last_groups;
            if (!is_wanted) first = fallback_;
            for (auto &row : more) std::ranges::fill(row, 0);
            for (const Movable &tensor : members)
                for (uint32_t f = 0; f <= fallback_; ++f) more[f][tensor.homes[f].device] += tensor.bytes[f];
            const auto fits = [&](uint32_t f) {
                for (uint32_t d = 0; d < fallback_; ++d)
                    if (more[f][d] > 0 && (used[d] > room[d] || more[f][d] > room[d] - used[d])) return false;
                return true;
            };
            while (first < fallback_ && !fits(first)) ++first;
            if (first == fallback_ && is_wanted && offload_.last_groups) return no_room(number, used, room, more);
            for (uint32_t d = 0; d <= fallback_; ++d) used[d] += more[first][d];
            for (const Movable &tensor : members) homes.push_back(tensor.homes[first]);
        }
        std::ranges::sort(homes, {}, &TensorHome::value);
        return homes;
    }

private:
    struct Movable {
        uint32_t group;
        std::vector<TensorHome> homes;  // by the first device that is allowed
        std::vector<uint64_t> bytes;    // there
    };

    Status no_room(uint64_t number, const std::vector<uint64_t> &used, const std::vector<uint64_t> &room,
                   const std::vector<std::vector<uint64_t>> &more) const {
        std::string text = fmt::format("no memory for group {} of the last {}", number, *offload_.last_groups);
        for (uint32_t d = 0; d < fallback_; ++d)
            text += fmt::format("; {} has {} bytes for weights and states, {} of them taken, and would need {} more",
                                devices_.list[d]->name(), room[d], used[d], more[d][d]);
        return Status::out_of_memory(std::move(text));
    }

    const Graph &graph_;
    const DeviceSet &devices_;
    const Offload &offload_;
    const uint32_t fallback_;
    std::vector<Movable> tensors_;  // by group
};

/// The same homes for another graph, which names the same tensors.
std::vector<TensorHome> homes_in(const Graph &other, const Graph &graph, std::span<const TensorHome> homes) {
    std::vector<TensorHome> out;
    for (const TensorHome &home : homes) {
        const ValueId id = other.find(graph.values()[home.value].name);
        if (id != k_no_value && is_tensor(other.values()[id])) out.push_back({id, home.device, home.buffer_type});
    }
    return out;
}

}  // namespace

Result<std::vector<TensorHome>> Session::place_tensors(const Graph &graph, const Offload &offload) {
    return no_throw([&]() -> Result<std::vector<TensorHome>> {
        const uint32_t devices = impl_->devices.count();
        if (offload.group_of.size() != graph.values().size())
            return Status::invalid_argument(
                fmt::format("{} groups were given for {} values", offload.group_of.size(), graph.values().size()));
        Filling filling(graph, impl_->devices, offload);
        TENON_TRY(filling.ask(impl_->pins));
        std::vector<uint64_t> free(devices, k_unlimited);
        for (uint32_t d = 0; d + 1 < devices; ++d) free[d] = free_bytes(*impl_->devices.list[d]);
        std::vector<uint64_t> room = free;
        // What graphs need depends on what runs where. Room only shrinks from round to round, so that there is an end.
        for (;;) {
            TENON_ASSIGN(auto homes, filling.fill(room));
            if (std::ranges::count(free, k_unlimited) == devices) return homes;
            std::vector<uint64_t> arena(devices), kept(devices);
            for (const Graph &run : offload.graphs) {
                TENON_ASSIGN(const auto memory, measure(run, homes_in(run, graph, homes)));
                for (uint32_t d = 0; d < devices; ++d) {
                    arena[d] = std::max(arena[d], memory[d].arena.bytes);
                    kept[d] += memory[d].bytes() - memory[d].arena.bytes;
                }
            }
            bool is_smaller = false;
            for (uint32_t d = 0; d + 1 < devices; ++d) {
                if (free[d] == k_unlimited) continue;
                const uint64_t left = free[d] - std::min(free[d], arena[d] + kept[d]);
                if (left >= room[d]) continue;
                room[d] = left;
                is_smaller = true;
            }
            if (!is_smaller) return homes;
        }
    });
}

}  // namespace tenon
