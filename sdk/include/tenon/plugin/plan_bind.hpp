// Placing and binding: the host's offsets and buffers become one table of addresses for each set, every bound checked
// once.
#ifndef TENON_PLUGIN_PLAN_BIND_HPP
#define TENON_PLUGIN_PLAN_BIND_HPP

#include "tenon/plugin/plan.hpp"

namespace tenon::plugin {

Place Plan::read_place(const tn_place &from, uint64_t bindings, std::string_view what) const {
    check_zero(from.reserved, what);
    if (from.binding == TN_NONE) return {};
    if (from.binding >= bindings) fail(TN_INVALID_ARGUMENT, what, ": binding ", from.binding, " is out of range");
    return {from.binding, from.offset};
}

void Plan::place(const tn_placement &placement) {
    if (placed_) fail(TN_INVALID_STATE, "the plan is placed already");
    const SpanView<tn_place> values(placement.values, placement.value_count, placement.value_stride);
    const SpanView<tn_place> scratch(placement.scratch, placement.scratch_count, placement.scratch_stride);
    if (values.size() != graph_->values().size() || scratch.size() != groups.size()) {
        fail(TN_INVALID_ARGUMENT, "placement of ", values.size(), " values and ", scratch.size(),
             " scratches for a plan of ", graph_->values().size(), " values and ", groups.size(), " groups");
    }
    if (placement.binding_count >= TN_NONE) fail(TN_INVALID_ARGUMENT, "placement: too many bindings");
    std::vector<Place> own(values.size()), own_scratch(groups.size());
    std::vector<bool> may_miss(values.size(), true), used(values.size(), false);
    for (const NodeView &node : graph_->nodes()) {
        for (uint32_t v : node.inputs) {
            if (v != TN_NONE) used[v] = true;
        }
        for (uint32_t v : node.outputs) used[v] = true;
    }
    for (uint32_t v = 0; v < own.size(); ++v) may_miss[v] = !used[v];
    for (uint32_t v : unstored) may_miss[v] = true;
    for (uint32_t v = 0; v < own.size(); ++v) {
        own[v] = read_place(values[v], placement.binding_count, "place of a value");
        const ValueView &value = graph_->value(v);
        if (own[v].binding == TN_NONE && !may_miss[v] && !value.is_empty()) {
            fail(TN_INVALID_ARGUMENT, "placement: value ", v, " needs storage");
        }
    }
    for (uint32_t g = 0; g < own_scratch.size(); ++g) {
        own_scratch[g] = read_place(scratch[g], placement.binding_count, "place of scratch");
        if (own_scratch[g].binding == TN_NONE && groups[g].scratch_bytes != 0) {
            fail(TN_INVALID_ARGUMENT, "placement: group ", g, " needs scratch");
        }
    }
    binding_count_ = placement.binding_count;
    places_ = std::move(own), scratch_places_ = std::move(own_scratch);
    placed();
    placed_ = true;
}

BoundBuffer Plan::read_binding(const tn_binding &from, uint64_t index) const {
    if (from.buffer == nullptr) {
        if (from.base == nullptr && from.bytes != 0)
            fail(TN_INVALID_ARGUMENT, "binding ", index, " has neither buffer nor base");
        return {nullptr, static_cast<std::byte *>(from.base), from.bytes};
    }
    auto *buffer = reinterpret_cast<Buffer *>(from.buffer);
    buffer->type().check_alive();
    if (from.bytes > buffer->bytes()) {
        fail(TN_INVALID_ARGUMENT, "binding ", index, " of ", from.bytes, " bytes: its buffer has ", buffer->bytes());
    }
    return {buffer, static_cast<std::byte *>(buffer->device_address()), from.bytes};
}

uint64_t Plan::room_of(const ValueView &value, const BoundBuffer &in) const {
    if (in.buffer == nullptr || value.view_of != TN_NONE || !value.is_contiguous()) return value.extent();
    return in.buffer->type().tensor_bytes(value);
}

std::byte *Plan::address(const BoundSet &set, Place place, uint64_t bytes, uint64_t alignment,
                         std::string_view what) const {
    if (place.binding == TN_NONE) return nullptr;
    const BoundBuffer &in = set.bindings[place.binding];
    if (place.offset > in.bytes || bytes > in.bytes - place.offset) {
        fail(TN_INVALID_ARGUMENT, what, ": ", bytes, " bytes at ", place.offset, " end beyond binding ", place.binding,
             " of ", in.bytes);
    }
    if (in.base == nullptr) return nullptr;  // 0 bytes
    std::byte *at = in.base + place.offset;
    if (bytes != 0 && reinterpret_cast<uintptr_t>(at) % alignment != 0) {
        fail(TN_INVALID_ARGUMENT, what, ": its address isn't a multiple of ", alignment);
    }
    return at;
}

void Plan::bind(const tn_bind &bind) {
    if (!placed_) fail(TN_INVALID_STATE, "the plan isn't placed yet");
    check_zero(bind.reserved, "tn_bind");
    const SpanView<tn_binding> bindings(bind.bindings, bind.binding_count, bind.binding_stride);
    if (bindings.size() != binding_count_) {
        fail(TN_INVALID_ARGUMENT, "bind of ", bindings.size(), " bindings for a placement of ", binding_count_);
    }
    auto set = std::make_unique<BoundSet>();
    for (uint64_t i = 0; i < bindings.size(); ++i) set->bindings.push_back(read_binding(bindings[i], i));
    const auto values = graph_->values();
    set->values.resize(values.size());
    for (const ValueView &v : values) {
        const Place place = places_[v.index];
        if (place.binding == TN_NONE) continue;
        const uint64_t room = room_of(v, set->bindings[place.binding]);
        set->values[v.index] =
            address(*set, place, room, v.info->is_block() ? 1 : v.info->block_bytes, join("value ", v.index));
    }
    const uint64_t alignment = device_.default_buffer_type().view().alignment;
    for (uint32_t g = 0; g < groups.size(); ++g) {
        const uint64_t bytes = groups[g].scratch_bytes;
        set->scratch.push_back(address(*set, scratch_places_[g], bytes, alignment, join("scratch of group ", g)));
    }
    set->cookies.assign(values.size(), 0);
    if (bind.cookies != nullptr) std::copy_n(bind.cookies, values.size(), set->cookies.begin());
    set->user = bound(*set);
    set_slot(bind.set) = std::move(set);
}

std::unique_ptr<BoundSet> &Plan::set_slot(uint32_t number) {
    if (number < kSmallSets) {
        if (number >= small_sets_.size()) small_sets_.resize(number + 1);
        return small_sets_[number];
    }
    const auto at = std::lower_bound(large_sets_.begin(), large_sets_.end(), number,
                                     [](const auto &one, uint32_t n) { return one.first < n; });
    if (at != large_sets_.end() && at->first == number) return at->second;
    return large_sets_.insert(at, {number, nullptr})->second;
}

const BoundSet &Plan::bound_set(uint32_t number) const {
    const BoundSet *found = nullptr;
    if (number < kSmallSets) {
        found = number < small_sets_.size() ? small_sets_[number].get() : nullptr;
    } else {
        const auto at = std::lower_bound(large_sets_.begin(), large_sets_.end(), number,
                                         [](const auto &one, uint32_t n) { return one.first < n; });
        if (at != large_sets_.end() && at->first == number) found = at->second.get();
    }
    if (found == nullptr) fail(TN_INVALID_STATE, "set ", number, " isn't bound");
    return *found;
}

}  // namespace tenon::plugin
#endif
