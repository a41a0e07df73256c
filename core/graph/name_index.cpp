#include "graph/name_index.h"

#include <xxhash.h>

#include <bit>

namespace tenon {

NameIndex::NameIndex(std::span<const Value> values, size_t names)
    : values_(values), mask_(std::bit_ceil(2 * names + 1) - 1), slots_(std::make_unique<Slot[]>(mask_ + 1)) {}

/// The name's slot, or the free one where it would go.
NameIndex::Slot &NameIndex::slot_of(std::string_view name, uint64_t hash) const {
    for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
        Slot &slot = slots_[i];
        if (slot.id == k_no_value || (slot.tag == uint32_t(hash >> 32) && values_[slot.id].name == name)) return slot;
    }
}

ValueId NameIndex::insert(ValueId id) {
    const std::string_view name = values_[id].name;
    const uint64_t hash = XXH3_64bits(name.data(), name.size());
    Slot &slot = slot_of(name, hash);
    if (slot.id != k_no_value) return slot.id;
    slot = {id, uint32_t(hash >> 32)};
    return k_no_value;
}

ValueId NameIndex::find(std::string_view name) const {
    return slot_of(name, XXH3_64bits(name.data(), name.size())).id;
}

}  // namespace tenon
