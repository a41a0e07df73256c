// GGUF v2 and v3 files (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), mapped into memory and checked
// whole before anything is used: every count, length, offset and size is compared with the bytes that are there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tenon/dtype.h"
#include "tenon/status.h"

namespace tenon::llm {

/// The format's value type numbers, as they stand in the file.
enum class GgufType : uint32_t {
    uint8 = 0,
    int8 = 1,
    uint16 = 2,
    int16 = 3,
    uint32 = 4,
    int32 = 5,
    float32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    uint64 = 10,
    int64 = 11,
    float64 = 12,
};

/// The type's name as the format's text has it ("uint32", "bool"); "unknown" for another number. Any thread.
std::string_view gguf_type_name(uint32_t type) noexcept;

/// A metadata array. Numbers lie unaligned in the file and are read one by one; strings are views into the mapping.
struct GgufArray;

/// A metadata value: all integers widened, both floats as double. Strings are views into the mapping; their bytes are
/// as the file has them, which need not be valid UTF-8.
using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string_view, GgufArray>;

struct GgufArray {
    uint32_t element_type = 0;         // the format's value type number
    uint64_t count = 0;                // of elements, whatever their type
    std::span<const std::byte> bytes;  // the elements as they lie in the file; empty for strings and arrays
    std::vector<std::string_view> strings;
    std::vector<GgufArray> arrays;  // the elements of an array of arrays
};

/// Element `index` (< count, the caller's duty) of an array; a copy where it is an array itself. Any thread.
GgufValue gguf_element(const GgufArray &array, uint64_t index);

struct GgufEntry {
    std::string_view key;
    uint32_t type = 0;  // the format's value type number
    GgufValue value;
};

struct GgufTensor {
    std::string_view name;
    DType type = DType::f32;
    std::vector<int64_t> shape;  // row-major: the file's dimensions reversed, so that the last is innermost
    uint64_t file_offset = 0;    // of its first byte, from the file's start
    uint64_t bytes = 0;
};

/// An opened file. Immutable; any thread. Views that it hands out live as long as it does.
///
/// What `open` promises: keys and names are each unique; every size is positive, every row is whole blocks; every
/// tensor's bytes lie in the file, aligned to `alignment()`, and no two tensors share any. It holds while nobody
/// shortens the file: reading a page that has gone from under the mapping ends the process (SIGBUS), as with any
/// mapping.
class Gguf {
public:
    /// Maps and checks `path`. Errors name the file and the key, tensor or byte offset that is wrong: not_found or
    /// denied for a file that can't be opened, unsupported for what is well formed but not for this reader (a byte
    /// order, version or tensor type), invalid_argument for a file that is damaged or no GGUF file at all. Takes memory
    /// in proportion to the metadata that is really there, whatever the counts claim.
    static Result<std::shared_ptr<const Gguf>> open(const std::filesystem::path &path);
    ~Gguf();
    Gguf(const Gguf &) = delete;
    Gguf &operator=(const Gguf &) = delete;

    const std::filesystem::path &path() const { return path_; }
    uint32_t version() const { return version_; }
    /// In bytes; a power of two.
    uint64_t alignment() const { return alignment_; }
    /// The whole file as mapped (read-only, private, page-aligned base).
    std::span<const std::byte> mapping() const { return mapping_; }
    /// The tensor's bytes in the mapping; `tensor` is one of `tensors()`.
    std::span<const std::byte> data(const GgufTensor &tensor) const {
        return mapping_.subspan(tensor.file_offset, tensor.bytes);
    }

    /// Both in the file's order.
    std::span<const GgufEntry> entries() const { return entries_; }
    std::span<const GgufTensor> tensors() const { return tensors_; }
    /// Null where there is none.
    const GgufEntry *find(std::string_view key) const;
    const GgufTensor *find_tensor(std::string_view name) const;

    /// Typed reads. Absent: nothing. Present with another type or out of range: invalid_argument naming file and key.
    /// Integers of any width and sign are taken where the value fits, floats of both widths; a number never stands for
    /// a bool, nor an integer for a float, nor the other way round.
    Result<std::optional<uint64_t>> get_uint(std::string_view key) const;
    Result<std::optional<double>> get_float(std::string_view key) const;
    Result<std::optional<bool>> get_bool(std::string_view key) const;
    Result<std::optional<std::string_view>> get_string(std::string_view key) const;
    Result<std::optional<std::span<const std::string_view>>> get_strings(std::string_view key) const;
    Result<std::optional<std::vector<int64_t>>> get_ints(std::string_view key) const;
    Result<std::optional<std::vector<float>>> get_floats(std::string_view key) const;

private:
    Gguf() = default;
    struct Parser;

    Status map();
    Status wrong_type(const GgufEntry &entry, std::string_view wanted) const;

    std::filesystem::path path_;
    uint32_t version_ = 0;
    uint64_t alignment_ = 32;  // the format's default
    std::span<const std::byte> mapping_;
    std::vector<GgufEntry> entries_;
    std::vector<GgufTensor> tensors_;
    std::vector<uint32_t> entries_by_key_, tensors_by_name_;  // sorted for the searches
};

}  // namespace tenon::llm
