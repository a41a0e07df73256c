// Reading from an opened GGUF file: search by name, values by type.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "llm/gguf.h"
#include "llm/gguf_text.h"

namespace tenon::llm {
namespace {

template <class T>
T load(std::span<const std::byte> bytes, uint64_t index) {
    T value;
    std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
    return value;
}

/// "a string", "a value of type int32", "an array of 3 x uint8": what a key holds, in words.
std::string describe(const GgufEntry &entry) {
    if (const auto *array = std::get_if<GgufArray>(&entry.value)) {
        return fmt::format("an array of {} x {}", array->count, gguf_type_name(array->element_type));
    }
    return fmt::format("a value of type {}", gguf_type_name(entry.type));
}

template <class Item, class Name>
const Item *search(std::span<const Item> items, std::span<const uint32_t> order, std::string_view wanted, Name name) {
    auto found = std::ranges::lower_bound(order, wanted, {}, [&](uint32_t i) { return name(items[i]); });
    return found != order.end() && name(items[*found]) == wanted ? &items[*found] : nullptr;
}

}  // namespace

std::string_view gguf_type_name(uint32_t type) noexcept {
    static constexpr std::array<std::string_view, 13> names{"uint8",  "int8",    "uint16", "int16",  "uint32",
                                                            "int32",  "float32", "bool",   "string", "array",
                                                            "uint64", "int64",   "float64"};
    return type < names.size() ? names[type] : "unknown";
}

GgufValue gguf_element(const GgufArray &array, uint64_t index) {
    switch (GgufType(array.element_type)) {
        case GgufType::uint8: return uint64_t(load<uint8_t>(array.bytes, index));
        case GgufType::int8: return int64_t(load<int8_t>(array.bytes, index));
        case GgufType::uint16: return uint64_t(load<uint16_t>(array.bytes, index));
        case GgufType::int16: return int64_t(load<int16_t>(array.bytes, index));
        case GgufType::uint32: return uint64_t(load<uint32_t>(array.bytes, index));
        case GgufType::int32: return int64_t(load<int32_t>(array.bytes, index));
        case GgufType::float32: return double(load<float>(array.bytes, index));
        case GgufType::boolean: return load<uint8_t>(array.bytes, index) != 0;
        case GgufType::string: return array.strings[index];
        case GgufType::array: return array.arrays[index];
        case GgufType::uint64: return load<uint64_t>(array.bytes, index);
        case GgufType::int64: return load<int64_t>(array.bytes, index);
        case GgufType::float64: return load<double>(array.bytes, index);
    }
    return uint64_t(0);
}

const GgufEntry *Gguf::find(std::string_view key) const {
    return search(entries(), entries_by_key_, key, [](const GgufEntry &entry) { return entry.key; });
}

const GgufTensor *Gguf::find_tensor(std::string_view name) const {
    return search(tensors(), tensors_by_name_, name, [](const GgufTensor &tensor) { return tensor.name; });
}

Status Gguf::wrong_type(const GgufEntry &entry, std::string_view wanted) const {
    return Status::invalid_argument(fmt::format("{}: metadata key '{}' holds {}, but must hold {}",
                                                escaped(path_.native(), 4096), escaped(entry.key), describe(entry),
                                                wanted));
}

Result<std::optional<uint64_t>> Gguf::get_uint(std::string_view key) const {
    const GgufEntry *entry = find(key);
    if (entry == nullptr) return std::optional<uint64_t>();
    if (const auto *value = std::get_if<uint64_t>(&entry->value)) return std::optional(*value);
    const auto *value = std::get_if<int64_t>(&entry->value);
    if (value == nullptr) return wrong_type(*entry, "an integer");
    if (*value < 0) {
        return Status::invalid_argument(fmt::format("{}: metadata key '{}' is {}, but can't be negative",
                                                    escaped(path_.native(), 4096), escaped(key), *value));
    }
    return std::optional(uint64_t(*value));
}

Result<std::optional<double>> Gguf::get_float(std::string_view key) const {
    const GgufEntry *entry = find(key);
    if (entry == nullptr) return std::optional<double>();
    if (const auto *value = std::get_if<double>(&entry->value)) return std::optional(*value);
    return wrong_type(*entry, "a float");
}

Result<std::optional<bool>> Gguf::get_bool(std::string_view key) const {
    const GgufEntry *entry = find(key);
    if (entry == nullptr) return std::optional<bool>();
    if (const auto *value = std::get_if<bool>(&entry->value)) return std::optional(*value);
    return wrong_type(*entry, "a bool");
}

Result<std::optional<std::string_view>> Gguf::get_string(std::string_view key) const {
    const GgufEntry *entry = find(key);
    if (entry == nullptr) return std::optional<std::string_view>();
    if (const auto *value = std::get_if<std::string_view>(&entry->value)) return std::optional(*value);
    return wrong_type(*entry, "a string");
}

Result<std::optional<std::span<const std::string_view>>> Gguf::get_strings(std::string_view key) const {
    const GgufEntry *entry = find(key);
    if (entry == nullptr) return std::optional<std::span<const std::string_view>>();
    const auto *array = std::get_if<GgufArray>(&entry->value);
    if (array == nullptr || GgufType(array->element_type) != GgufType::string) {
        return wrong_type(*entry, "an array of strings");
    }
    return std::optional(std::span<const std::string_view>(array->strings));
}

Result<std::optional<std::vector<int64_t>>> Gguf::get_ints(std::string_view key) const {
    const GgufEntry *entry = find(key);
    if (entry == nullptr) return std::optional<std::vector<int64_t>>();
    const auto *array = std::get_if<GgufArray>(&entry->value);
    if (array == nullptr) return wrong_type(*entry, "an array of integers");
    std::vector<int64_t> out;
    out.reserve(array->count);
    // An empty array holds integers as long as its element type does.
    switch (GgufType(array->element_type)) {
        case GgufType::float32:
        case GgufType::float64:
        case GgufType::boolean:
        case GgufType::string:
        case GgufType::array: return wrong_type(*entry, "an array of integers");
        default: break;
    }
    for (uint64_t i = 0; i < array->count; ++i) {
        const GgufValue value = gguf_element(*array, i);
        const auto *natural = std::get_if<uint64_t>(&value);
        if (natural != nullptr && *natural > uint64_t(std::numeric_limits<int64_t>::max())) {
            return Status::invalid_argument(
                fmt::format("{}: metadata key '{}': element {} is {}, which is out of range",
                            escaped(path_.native(), 4096), escaped(key), i, *natural));
        }
        out.push_back(natural != nullptr ? int64_t(*natural) : std::get<int64_t>(value));
    }
    return std::optional(std::move(out));
}

Result<std::optional<std::vector<float>>> Gguf::get_floats(std::string_view key) const {
    const GgufEntry *entry = find(key);
    if (entry == nullptr) return std::optional<std::vector<float>>();
    const auto *array = std::get_if<GgufArray>(&entry->value);
    const GgufType type = array != nullptr ? GgufType(array->element_type) : GgufType::array;
    if (type != GgufType::float32 && type != GgufType::float64) return wrong_type(*entry, "an array of floats");
    std::vector<float> out(array->count);
    for (uint64_t i = 0; i < array->count; ++i) out[i] = float(std::get<double>(gguf_element(*array, i)));
    return std::optional(std::move(out));
}

}  // namespace tenon::llm
