// tenon inspect MODEL: what a GGUF file holds, without reading its tensors.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cmd/command.h"
#include "cmd/support/options.h"
#include "cmd/support/output.h"
#include "llm/gguf.h"
#include "llm/gguf_text.h"

namespace tenon::cmd {
namespace {

using llm::escaped;
using llm::Gguf;
using llm::GgufArray;
using llm::GgufEntry;
using llm::GgufTensor;
using llm::GgufType;
using llm::GgufValue;
using Json = nlohmann::ordered_json;

constexpr size_t k_value_width = 72;  // of a metadata value in the text form, in bytes
constexpr size_t k_name_width = 64;   // columns never get wider for the sake of one long name

struct Total {
    uint64_t tensors = 0, elements = 0, bytes = 0;
};

/// Sums can't overflow: tensors share no bytes of the file, and no type has more than 6 elements a byte.
struct Totals : Total {
    std::map<DType, Total> by_type;
};

uint64_t elements(const GgufTensor &tensor) {
    const DTypeInfo &info = dtype_info(tensor.type);
    return tensor.bytes / uint64_t(info.block_bytes) * uint64_t(info.block_elements);
}

Totals totals(const Gguf &file) {
    Totals all;
    for (const GgufTensor &tensor : file.tensors()) {
        for (Total *total : {static_cast<Total *>(&all), &all.by_type[tensor.type]}) {
            total->tensors += 1;
            total->elements += elements(tensor);
            total->bytes += tensor.bytes;
        }
    }
    return all;
}

// The JSON form: everything, values exact.

Json json_value(const GgufValue &value) {
    if (const auto *array = std::get_if<GgufArray>(&value)) {
        Json out = Json::array();
        for (uint64_t i = 0; i < array->count; ++i) out.push_back(json_value(llm::gguf_element(*array, i)));
        return out;
    }
    return std::visit(
        [](const auto &plain) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, GgufArray>) {
                return nullptr;
            } else {
                return plain;
            }
        },
        value);
}

Json json_entry(const GgufEntry &entry) {
    Json out{{"type", llm::gguf_type_name(entry.type)}};
    if (const auto *array = std::get_if<GgufArray>(&entry.value)) {
        out["element_type"] = llm::gguf_type_name(array->element_type);
    }
    out["value"] = json_value(entry.value);
    return out;
}

Json json_total(const Total &total) {
    return {{"tensors", total.tensors}, {"elements", total.elements}, {"bytes", total.bytes}};
}

Json json_file(const Gguf &file) {
    Json out{{"file", file.path().native()},
             {"format", "GGUF"},
             {"version", file.version()},
             {"alignment", file.alignment()},
             {"file_bytes", file.mapping().size()}};
    Json &metadata = out["metadata"] = Json::object();
    for (const GgufEntry &entry : file.entries()) metadata[std::string(entry.key)] = json_entry(entry);
    Json &tensors = out["tensors"] = Json::array();
    for (const GgufTensor &tensor : file.tensors()) {
        tensors.push_back({{"name", tensor.name},
                           {"type", dtype_info(tensor.type).name},
                           {"shape", tensor.shape},
                           {"bytes", tensor.bytes},
                           {"offset", tensor.file_offset}});
    }
    const Totals all = totals(file);
    out["totals"] = json_total(all);
    Json &types = out["totals"]["types"] = Json::object();
    for (const auto &[type, total] : all.by_type) types[std::string(dtype_info(type).name)] = json_total(total);
    return out;
}

// The text form: aligned columns, long values cut.

std::string text_value(uint32_t type, const GgufValue &value, size_t width);

std::string text_array(const GgufArray &array, size_t width) {
    std::string out = "[";
    for (uint64_t i = 0; i < array.count; ++i) {
        const std::string element = text_value(array.element_type, llm::gguf_element(array, i), width);
        if (i > 0) out += ", ";
        if (out.size() + element.size() > width) return out + "...]";
        out += element;
    }
    return out + "]";
}

std::string text_value(uint32_t type, const GgufValue &value, size_t width) {
    if (const auto *array = std::get_if<GgufArray>(&value)) return text_array(*array, width);
    if (const auto *text = std::get_if<std::string_view>(&value)) return fmt::format("\"{}\"", escaped(*text, width));
    if (const auto *number = std::get_if<double>(&value)) {
        // A float's shortest form: 1e-05, not the double next to it.
        return GgufType(type) == GgufType::float32 ? fmt::to_string(float(*number)) : fmt::to_string(*number);
    }
    if (const auto *natural = std::get_if<uint64_t>(&value)) return fmt::to_string(*natural);
    if (const auto *integer = std::get_if<int64_t>(&value)) return fmt::to_string(*integer);
    return std::get<bool>(value) ? "true" : "false";
}

std::string text_type(const GgufEntry &entry) {
    const auto *array = std::get_if<GgufArray>(&entry.value);
    if (array == nullptr) return std::string(llm::gguf_type_name(entry.type));
    return fmt::format("{}[{}]", llm::gguf_type_name(array->element_type), array->count);
}

/// "98.3 MB": decimal units, three digits.
std::string short_bytes(uint64_t bytes) {
    static constexpr std::string_view units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double value = double(bytes);
    size_t unit = 0;
    for (; value >= 999.5; value /= 1000) ++unit;
    if (unit == 0) return fmt::format("{} bytes", bytes);
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, units[unit]);
}

using Row = std::vector<std::string>;

/// Prints rows in columns, those marked in `right` aligned to the right.
void print_table(Output &out, const std::vector<Row> &rows, const std::vector<bool> &right) {
    std::vector<size_t> widths(right.size());
    for (const Row &row : rows) {
        for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], std::min(row[i].size(), k_name_width));
    }
    for (const Row &row : rows) {
        std::string line;
        for (size_t i = 0; i < row.size(); ++i) {
            line += right[i] ? fmt::format("  {:>{}}", row[i], widths[i]) : fmt::format("  {:<{}}", row[i], widths[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out.print("{}\n", line);
    }
}

void print_text(Output &out, const Gguf &file) {
    const Totals all = totals(file);
    out.print("{}: GGUF version {}, {}, data aligned to {} bytes\n", escaped(file.path().native(), 4096),
              file.version(), short_bytes(file.mapping().size()), file.alignment());

    out.print("\nMetadata ({})\n", file.entries().size());
    std::vector<Row> rows;
    for (const GgufEntry &entry : file.entries()) {
        rows.push_back({escaped(entry.key), text_type(entry), text_value(entry.type, entry.value, k_value_width)});
    }
    print_table(out, rows, {false, false, false});

    out.print("\nTensors ({})\n", file.tensors().size());
    rows = {{"name", "type", "shape", "bytes"}};
    for (const GgufTensor &tensor : file.tensors()) {
        rows.push_back({escaped(tensor.name), std::string(dtype_info(tensor.type).name),
                        fmt::format("[{}]", fmt::join(tensor.shape, ", ")), fmt::to_string(tensor.bytes)});
    }
    print_table(out, rows, {false, false, false, true});

    out.print("\nTotals\n");
    rows = {{"type", "tensors", "elements", "bytes", ""}};
    auto add = [&](std::string_view name, const Total &total) {
        rows.push_back({std::string(name), fmt::to_string(total.tensors), fmt::to_string(total.elements),
                        fmt::to_string(total.bytes), short_bytes(total.bytes)});
    };
    for (const auto &[type, total] : all.by_type) add(dtype_info(type).name, total);
    add("all", all);
    print_table(out, rows, {false, true, true, true, false});
}

int run(std::span<const std::string> args) {
    std::string model;
    bool json = false;
    Options options(
        "inspect", "Shows what a GGUF file holds: metadata, tensors and totals",
        "Shapes are row-major, the innermost dimension last, as in NumPy; the file lists dimensions the other "
        "way round. Elements count the tensors' numbers, which for a language model are its parameters. Text "
        "cuts long values; JSON holds all, strings that aren't UTF-8 with U+FFFD for what is invalid.");
    options.positional("MODEL", "GGUF file, version 2 or 3", model).flag("json", "print one JSON object", json);
    if (auto exit_code = options.parse(args)) return *exit_code;

    Result<std::shared_ptr<const Gguf>> file = Gguf::open(model);
    if (!file.ok()) return fail("inspect", file.status());
    Output out("inspect");
    if (json) {
        out.write(json_text(json_file(**file)) + "\n");
    } else {
        print_text(out, **file);
    }
    return out.finish();
}

}  // namespace

extern const Command command_inspect;
const Command command_inspect{"inspect", "show metadata and tensors of a GGUF file", run};

}  // namespace tenon::cmd
