// Opening a GGUF file: the mapping, and one pass over its header that trusts nothing.
#include "llm/gguf.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <system_error>

#include "llm/gguf_text.h"

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

namespace tenon::llm {
namespace {

constexpr uint64_t k_max_key_bytes = 65535;  // the format's limit
constexpr uint32_t k_max_dimensions = 8;     // the format has 4 for now; a tensor of this runtime has up to 8
constexpr int k_max_array_depth = 8;
// The least that an item takes in the file, which bounds what a count can truly mean.
constexpr uint64_t k_min_entry_bytes = 8 + 4 + 1, k_min_tensor_bytes = 8 + 4 + 4 + 8;
constexpr uint64_t k_min_string_bytes = 8, k_min_array_bytes = 4 + 8;
// Room is made ahead for at most so many items; beyond, memory grows with what has really been read.
constexpr uint64_t k_max_reserve = 4096;

/// Bytes of a value of fixed size; 0 for strings, arrays and unknown types.
uint64_t fixed_bytes(uint32_t type) {
    switch (GgufType(type)) {
        case GgufType::uint8:
        case GgufType::int8:
        case GgufType::boolean: return 1;
        case GgufType::uint16:
        case GgufType::int16: return 2;
        case GgufType::uint32:
        case GgufType::int32:
        case GgufType::float32: return 4;
        case GgufType::uint64:
        case GgufType::int64:
        case GgufType::float64: return 8;
        case GgufType::string:
        case GgufType::array: return 0;
    }
    return 0;
}

/// What the file is instead, as far as its first bytes tell; empty if they don't.
std::string_view guess_format(std::string_view head) {
    struct Row {
        size_t at;
        std::string_view bytes, what;
    };
    static constexpr Row rows[] = {
        {0, "version https://git-lfs", "it is a Git LFS pointer, not the model itself: fetch it with 'git lfs pull'"},
        {0, "lmgg", "it is a model in the GGML format that came before GGUF: convert it first"},
        {0, "fmgg", "it is a model in the GGMF format that came before GGUF: convert it first"},
        {0, "tjgg", "it is a model in the GGJT format that came before GGUF: convert it first"},
        {0, "FUGG",
         "its magic is byte-swapped, as a big-endian writer would leave it; only little-endian files can be read"},
        {0, "PK\x03\x04", "it is a ZIP archive, perhaps a PyTorch checkpoint: convert it to GGUF first"},
        {8, "{\"", "it looks like a safetensors file: convert it to GGUF first"},
        {0, "\x1f\x8b", "it is compressed with gzip: unpack it first"},
        {0, "\x28\xb5\x2f\xfd", "it is compressed with Zstandard: unpack it first"},
        {0, "<!DOCTYPE", "it is a web page, perhaps an error message saved by a download"},
        {0, "<!doctype", "it is a web page, perhaps an error message saved by a download"},
        {0, "<html", "it is a web page, perhaps an error message saved by a download"},
    };
    for (const Row &row : rows) {
        if (head.size() >= row.at && head.substr(row.at).starts_with(row.bytes)) return row.what;
    }
    return {};
}

/// Sorts the indices of `items` by name into `order` and answers the index of the first item in the file whose name an
/// earlier one has.
template <class Item, class Name>
std::optional<uint32_t> sort_by_name(std::span<const Item> items, Name name, std::vector<uint32_t> &order) {
    order.resize(items.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t i) { return name(items[i]); });
    std::optional<uint32_t> twice;
    for (size_t i = 1; i < order.size(); ++i) {
        if (name(items[order[i]]) == name(items[order[i - 1]]) && (!twice || order[i] < *twice)) twice = order[i];
    }
    return twice;
}

}  // namespace

/// One pass from the first byte to the end of the tensor table. `at` never passes `size`.
struct Gguf::Parser {
    Gguf &file;
    const std::byte *base = file.mapping_.data();
    uint64_t size = file.mapping_.size();
    uint64_t at = 0;
    // What is being read, for messages.
    std::string_view part = {}, name = {};

    uint64_t left() const { return size - at; }

    template <class T>
    bool read(T &out) {
        if (left() < sizeof(T)) return false;
        std::memcpy(&out, base + at, sizeof(T));
        at += sizeof(T);
        return true;
    }

    bool read_string(std::string_view &out) {
        uint64_t length = 0;
        if (!read(length) || length > left()) return false;
        out = {reinterpret_cast<const char *>(base) + at, size_t(length)};
        at += length;
        return true;
    }

    Status error(Code code, std::string_view message) const {
        std::string where = escaped(file.path_.native(), 4096);
        if (!part.empty()) where += fmt::format(": {}", part);
        if (!name.empty()) where += fmt::format(" '{}'", escaped(name));
        return {code, fmt::format("{}: {}", where, message)};
    }
    Status invalid(std::string_view message) const { return error(Code::invalid_argument, message); }
    Status cut(std::string_view what) const {
        return invalid(fmt::format("{} at byte {} runs past the end of the file ({} bytes); it is truncated or damaged",
                                   what, at, size));
    }

    Status parse();
    Status parse_head(uint64_t &tensor_count, uint64_t &entry_count);
    Status parse_entries(uint64_t count);
    Status parse_value(uint32_t type, GgufValue &value);
    Status parse_array(GgufArray &array, int depth);
    Status take_alignment();
    Status parse_tensors(uint64_t count);
    Status parse_tensor(GgufTensor &tensor);
    Status place_tensors();
    Status check_overlap();
};

Status Gguf::Parser::parse() {
    uint64_t tensor_count = 0, entry_count = 0;
    TENON_TRY(parse_head(tensor_count, entry_count));
    TENON_TRY(parse_entries(entry_count));
    TENON_TRY(take_alignment());
    TENON_TRY(parse_tensors(tensor_count));
    TENON_TRY(place_tensors());
    return check_overlap();
}

Status Gguf::Parser::parse_head(uint64_t &tensor_count, uint64_t &entry_count) {
    const std::string_view head(reinterpret_cast<const char *>(base), std::min<uint64_t>(size, 64));
    if (size == 0) return invalid("the file is empty");
    if (!head.starts_with("GGUF")) {
        const std::string_view guess = guess_format(head);
        return invalid(fmt::format("not a GGUF file: it starts with '{}' instead of 'GGUF'{}{}",
                                   escaped(head.substr(0, 4)), guess.empty() ? "" : "; ", guess));
    }
    at = 4;
    uint32_t &version = file.version_;
    if (!read(version)) return cut("the version");
    if ((version & 0xffff) == 0 && version != 0) {
        return error(Code::unsupported, "the file is big-endian; only little-endian GGUF files can be read");
    }
    if (version < 2 || version > 3) {
        return error(Code::unsupported,
                     fmt::format("GGUF version {} can't be read, only 2 and 3{}", version,
                                 version == 1 ? "; convert the model again with a current tool" : ""));
    }
    if (!read(tensor_count)) return cut("the number of tensors");
    if (!read(entry_count)) return cut("the number of metadata entries");
    if (entry_count > left() / k_min_entry_bytes) {
        return invalid(fmt::format("{} metadata entries can't fit into {} bytes; the file is truncated or damaged",
                                   entry_count, size));
    }
    if (tensor_count > left() / k_min_tensor_bytes) {
        return invalid(
            fmt::format("{} tensors can't fit into {} bytes; the file is truncated or damaged", tensor_count, size));
    }
    if (std::max(entry_count, tensor_count) > std::numeric_limits<uint32_t>::max()) {
        return error(Code::unsupported, "more than 2^32 metadata entries or tensors");
    }
    return {};
}

Status Gguf::Parser::parse_entries(uint64_t count) {
    file.entries_.reserve(std::min(count, k_max_reserve));
    for (uint64_t i = 0; i < count; ++i) {
        part = "metadata", name = {};
        GgufEntry entry;
        if (!read_string(entry.key)) return cut(fmt::format("the key of entry {} of {}", i + 1, count));
        if (entry.key.empty()) return invalid(fmt::format("the key of entry {} of {} is empty", i + 1, count));
        if (entry.key.size() > k_max_key_bytes) {
            return invalid(fmt::format("the key of entry {} of {} has {} bytes, the format allows {}", i + 1, count,
                                       entry.key.size(), k_max_key_bytes));
        }
        part = "metadata key", name = entry.key;
        if (!read(entry.type)) return cut("the type");
        TENON_TRY(parse_value(entry.type, entry.value));
        file.entries_.push_back(std::move(entry));
    }
    auto key = [](const GgufEntry &entry) { return entry.key; };
    if (auto twice = sort_by_name(std::span<const GgufEntry>(file.entries_), key, file.entries_by_key_)) {
        name = file.entries_[*twice].key;
        return invalid("the key stands in the file more than once");
    }
    return {};
}

Status Gguf::Parser::parse_value(uint32_t type, GgufValue &value) {
    if (GgufType(type) == GgufType::string) {
        std::string_view text;
        if (!read_string(text)) return cut("the string");
        value = text;
        return {};
    }
    if (GgufType(type) == GgufType::array) return parse_array(value.emplace<GgufArray>(), 1);
    const uint64_t bytes = fixed_bytes(type);
    if (bytes == 0) return error(Code::unsupported, fmt::format("unknown value type {}", type));
    if (left() < bytes) return cut("the value");
    if (GgufType(type) == GgufType::boolean && uint8_t(base[at]) > 1) {
        return invalid(fmt::format("the bool at byte {} is {}, neither 0 nor 1", at, uint8_t(base[at])));
    }
    GgufArray one{.element_type = type, .count = 1, .bytes = {base + at, bytes}, .strings = {}, .arrays = {}};
    value = gguf_element(one, 0);
    at += bytes;
    return {};
}

Status Gguf::Parser::parse_array(GgufArray &array, int depth) {
    if (depth > k_max_array_depth) {
        return error(Code::unsupported, fmt::format("arrays are nested more than {} deep", k_max_array_depth));
    }
    if (!read(array.element_type)) return cut("the array's type");
    if (!read(array.count)) return cut("the array's length");
    const GgufType type = GgufType(array.element_type);
    const uint64_t fixed = fixed_bytes(array.element_type);
    const uint64_t least = type == GgufType::string  ? k_min_string_bytes
                           : type == GgufType::array ? k_min_array_bytes
                                                     : fixed;
    if (least == 0) return error(Code::unsupported, fmt::format("unknown array element type {}", array.element_type));
    if (array.count > left() / least) {
        return invalid(
            fmt::format("an array of {} x {} at byte {} runs past the end of the file ({} bytes); it is truncated "
                        "or damaged",
                        array.count, gguf_type_name(array.element_type), at, size));
    }
    if (type == GgufType::string) {
        array.strings.resize(array.count);
        for (std::string_view &text : array.strings) {
            if (!read_string(text)) return cut(fmt::format("array element {}", &text - array.strings.data()));
        }
        return {};
    }
    if (type == GgufType::array) {
        array.arrays.reserve(std::min(array.count, k_max_reserve));
        for (uint64_t i = 0; i < array.count; ++i) TENON_TRY(parse_array(array.arrays.emplace_back(), depth + 1));
        return {};
    }
    array.bytes = {base + at, size_t(array.count * fixed)};
    if (type == GgufType::boolean) {
        auto bad = std::ranges::find_if(array.bytes, [](std::byte b) { return uint8_t(b) > 1; });
        if (bad != array.bytes.end()) {
            return invalid(fmt::format("array element {} is a bool of value {}, neither 0 nor 1",
                                       bad - array.bytes.begin(), uint8_t(*bad)));
        }
    }
    at += array.bytes.size();
    return {};
}

Status Gguf::Parser::take_alignment() {
    part = "metadata key", name = "general.alignment";
    TENON_ASSIGN(std::optional<uint64_t> alignment, file.get_uint(name));
    if (!alignment) return {};
    if (!std::has_single_bit(*alignment))
        return invalid(fmt::format("the alignment {} isn't a power of two", *alignment));
    file.alignment_ = *alignment;
    return {};
}

Status Gguf::Parser::parse_tensors(uint64_t count) {
    file.tensors_.reserve(std::min(count, k_max_reserve));
    for (uint64_t i = 0; i < count; ++i) {
        part = "tensor table", name = {};
        GgufTensor tensor;
        if (!read_string(tensor.name)) return cut(fmt::format("the name of tensor {} of {}", i + 1, count));
        if (tensor.name.empty()) return invalid(fmt::format("the name of tensor {} of {} is empty", i + 1, count));
        part = "tensor", name = tensor.name;
        TENON_TRY(parse_tensor(tensor));
        file.tensors_.push_back(std::move(tensor));
    }
    auto by_name = [](const GgufTensor &tensor) { return tensor.name; };
    if (auto twice = sort_by_name(std::span<const GgufTensor>(file.tensors_), by_name, file.tensors_by_name_)) {
        name = file.tensors_[*twice].name;
        return invalid("the name stands in the file more than once");
    }
    return {};
}

/// Fills everything but the place in the file: `file_offset` stays relative to the data until the table's end is known.
Status Gguf::Parser::parse_tensor(GgufTensor &tensor) {
    uint32_t rank = 0, type = 0;
    if (!read(rank)) return cut("the number of dimensions");
    if (rank > k_max_dimensions)
        return invalid(fmt::format("{} dimensions, at most {} are allowed", rank, k_max_dimensions));
    tensor.shape.resize(rank);
    for (uint32_t i = 0; i < rank; ++i) {
        int64_t &dimension = tensor.shape[rank - 1 - i];
        if (!read(dimension)) return cut(fmt::format("dimension {}", i));
        if (dimension <= 0) return invalid(fmt::format("dimension {} is {}, not a positive size", i, dimension));
    }
    if (!read(type)) return cut("the type");
    if (!read(tensor.file_offset)) return cut("the offset");
    const DTypeInfo *info = find_dtype(type);
    // Ids above are this runtime's own, which no file can mean.
    if (info == nullptr || type >= 0x10000)
        return error(Code::unsupported, fmt::format("unknown tensor type {}", type));
    tensor.type = info->type;
    const int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
    if (row % info->block_elements != 0) {
        return invalid(fmt::format("rows of {} elements aren't whole blocks of {} ({} elements each)", row, info->name,
                                   info->block_elements));
    }
    const std::optional<int64_t> bytes = canonical_bytes(info->type, tensor.shape);
    if (!bytes) return invalid(fmt::format("the size of shape [{}] overflows", fmt::join(tensor.shape, ", ")));
    tensor.bytes = uint64_t(*bytes);
    return {};
}

Status Gguf::Parser::place_tensors() {
    const uint64_t alignment = file.alignment_;
    uint64_t start = 0;
    part = "tensor table", name = {};
    if (__builtin_add_overflow(at, alignment - 1, &start))
        return invalid(fmt::format("alignment {} overflows", alignment));
    start &= ~(alignment - 1);
    part = "tensor";
    for (GgufTensor &tensor : file.tensors_) {
        name = tensor.name;
        const uint64_t offset = tensor.file_offset;
        if (offset % alignment != 0) {
            return invalid(fmt::format("offset {} isn't a multiple of the alignment {}", offset, alignment));
        }
        if (start > size || offset > size - start || tensor.bytes > size - start - offset) {
            return invalid(
                fmt::format("{} bytes at offset {} of the data (which begins at byte {}) run past the end of the "
                            "file ({} bytes); it is truncated or damaged",
                            tensor.bytes, offset, start, size));
        }
        tensor.file_offset = start + offset;
    }
    return {};
}

Status Gguf::Parser::check_overlap() {
    std::vector<const GgufTensor *> order;
    order.reserve(file.tensors_.size());
    for (const GgufTensor &tensor : file.tensors_) order.push_back(&tensor);
    std::ranges::stable_sort(order, {}, &GgufTensor::file_offset);
    for (size_t i = 1; i < order.size(); ++i) {
        const GgufTensor &first = *order[i - 1], &second = *order[i];
        if (first.file_offset + first.bytes <= second.file_offset) continue;
        name = second.name;
        return invalid(fmt::format("its bytes from {} on overlap those of tensor '{}', which end at {}",
                                   second.file_offset, escaped(first.name), first.file_offset + first.bytes));
    }
    return {};
}

Result<std::shared_ptr<const Gguf>> Gguf::open(const std::filesystem::path &path) {
    try {
        std::shared_ptr<Gguf> file(new Gguf);
        file->path_ = path;
        TENON_TRY(file->map());
        Parser parser{*file};
        TENON_TRY(parser.parse());
        return std::shared_ptr<const Gguf>(std::move(file));
    } catch (const std::bad_alloc &) {
        return Status::out_of_memory(escaped(path.native(), 4096) + ": not enough memory for the file's metadata");
    }
}

/// Regular files only, opened so that a FIFO or device can't make us wait.
Status Gguf::map() {
    const std::string shown = escaped(path_.native(), 4096);
    const int fd = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        const Code code = errno == ENOENT || errno == ENOTDIR ? Code::not_found
                          : errno == EACCES                   ? Code::denied
                                                              : Code::invalid_argument;
        return {code, fmt::format("{}: can't be opened: {}", shown, std::generic_category().message(errno))};
    }
    struct Closer {
        int fd;
        ~Closer() { ::close(fd); }
    } closer{fd};
    struct stat info {};
    if (::fstat(fd, &info) != 0) {
        return Status::internal(
            fmt::format("{}: can't be examined: {}", shown, std::generic_category().message(errno)));
    }
    if (S_ISDIR(info.st_mode)) return Status::invalid_argument(shown + ": is a directory, not a GGUF file");
    if (!S_ISREG(info.st_mode)) {
        return Status::invalid_argument(shown +
                                        ": is a pipe or device; a model must be a regular file, which can be mapped");
    }
    if (info.st_size == 0) return {};  // mmap refuses it; the parser says what is wrong
    void *base = ::mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (base == MAP_FAILED) {
        const Code code = errno == ENOMEM ? Code::out_of_memory : Code::internal;
        return {code, fmt::format("{}: can't be mapped: {}", shown, std::generic_category().message(errno))};
    }
    mapping_ = {static_cast<const std::byte *>(base), size_t(info.st_size)};
    return {};
}

Gguf::~Gguf() {
    if (!mapping_.empty()) ::munmap(const_cast<std::byte *>(mapping_.data()), mapping_.size());
}

}  // namespace tenon::llm
