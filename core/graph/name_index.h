// Values by name: an open-addressed table of numbers, a quarter to half full. Names stay where the values have them.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tenon/graph.h"

namespace tenon {

class NameIndex {
public:
    /// Room for `names` names of `values`, which must outlive this. Throws std::bad_alloc.
    NameIndex(std::span<const Value> values, size_t names);

    /// Takes the value's name, unless it is there: then the number that has it already, else k_no_value.
    ValueId insert(ValueId id);
    /// k_no_value where there is none. Any thread, while nobody inserts.
    ValueId find(std::string_view name) const;

private:
    struct Slot {
        ValueId id = k_no_value;
        uint32_t tag = 0;  // of the name's hash: other names are told apart without looking at them
    };
    Slot &slot_of(std::string_view name, uint64_t hash) const;

    std::span<const Value> values_;
    size_t mask_;
    std::unique_ptr<Slot[]> slots_;
};

/// Whether `Graph::find` may answer it: leaves and what nodes write. A view has but its base's name.
inline bool has_own_name(const Value &value) {
    return value.view_of == k_no_value || value.producer != k_no_value;
}

}  // namespace tenon
