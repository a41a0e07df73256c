// The GGUF reader on files made here, byte by byte: what is right is read as written, and each kind of damage is
// refused with a message that names the file and the thing. tests/hostile/ does the same from outside, on many more
// files.
#include "llm/gguf.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <limits>

#include "llm/gguf_text.h"

using namespace tenon;
using namespace tenon::llm;

namespace {

constexpr uint64_t k_huge = std::numeric_limits<int64_t>::max();

/// Writes a file's bytes in order.
struct Bytes {
    std::string out;

    template <class T>
    Bytes &number(T value) {
        out.append(reinterpret_cast<const char *>(&value), sizeof(value));
        return *this;
    }
    Bytes &string(std::string_view text) {
        number<uint64_t>(text.size());
        out += text;
        return *this;
    }
    Bytes &head(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
        out += "GGUF";
        return number(version).number(tensors).number(entries);
    }
    Bytes &key(std::string_view name, GgufType type) { return string(name).number(uint32_t(type)); }
    Bytes &array(std::string_view name, GgufType element, uint64_t count) {
        return key(name, GgufType::array).number(uint32_t(element)).number(count);
    }
    /// `dimensions` innermost first, as in the file.
    Bytes &tensor(std::string_view name, std::vector<uint64_t> dimensions, uint32_t type, uint64_t offset) {
        string(name).number(uint32_t(dimensions.size()));
        for (uint64_t size : dimensions) number(size);
        return number(type).number(offset);
    }
    Bytes &data(uint64_t bytes, uint64_t alignment = 32) {
        out.resize((out.size() + alignment - 1) / alignment * alignment);
        out.append(bytes, 'x');
        return *this;
    }
};

/// A file of its own in the temporary directory, gone with the object.
class TemporaryFile {
public:
    explicit TemporaryFile(std::string_view bytes) {
        std::string name = (std::filesystem::temp_directory_path() / "tenon-gguf-XXXXXX").string();
        const int fd = ::mkstemp(name.data());
        REQUIRE(fd >= 0);
        REQUIRE(::write(fd, bytes.data(), bytes.size()) == ssize_t(bytes.size()));
        ::close(fd);
        path_ = name;
    }
    ~TemporaryFile() { std::filesystem::remove(path_); }
    TemporaryFile(const TemporaryFile &) = delete;
    TemporaryFile &operator=(const TemporaryFile &) = delete;
    const std::filesystem::path &path() const { return path_; }

private:
    std::filesystem::path path_;
};

std::shared_ptr<const Gguf> read(const Bytes &bytes) {
    TemporaryFile file(bytes.out);
    Result<std::shared_ptr<const Gguf>> gguf = Gguf::open(file.path());
    INFO(gguf.status().message());
    REQUIRE(gguf.ok());
    return *gguf;  // the mapping outlives the file's name
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
}

/// Opening must fail, on one line, naming the file and each of `parts`.
void check_refused(std::string_view bytes, Code code, std::initializer_list<std::string_view> parts) {
    TemporaryFile file(bytes);
    Result<std::shared_ptr<const Gguf>> gguf = Gguf::open(file.path());
    REQUIRE_FALSE(gguf.ok());
    const std::string &message = gguf.status().message();
    CAPTURE(message);
    CHECK(gguf.status().code() == code);
    CHECK(message.starts_with(file.path().string()));
    CHECK_FALSE(contains(message, "\n"));
    for (std::string_view part : parts) CHECK_MESSAGE(contains(message, part), part);
}

template <class T>
T value(Result<std::optional<T>> result) {
    INFO(result.status().message());
    REQUIRE(result.ok());
    REQUIRE(result->has_value());
    return **result;
}

/// Two tensors of one block each, and metadata; every check of a truncation starts from it.
Bytes small_file() {
    return Bytes()
        .head(2, 3)
        .key("general.architecture", GgufType::string)
        .string("llama")
        .key("answer", GgufType::uint8)
        .number<uint8_t>(42)
        .array("words", GgufType::string, 2)
        .string("one")
        .string("two")
        .tensor("a", {32}, uint32_t(DType::q8_0), 0)
        .tensor("b", {4, 2}, uint32_t(DType::f32), 64)
        .data(64 + 32);
}

}  // namespace

TEST_CASE("gguf: every scalar type is read as written, at both ends of its range") {
    Bytes bytes;
    bytes.head(0, 13);
    bytes.key("u8", GgufType::uint8).number<uint8_t>(255).key("i8", GgufType::int8).number<int8_t>(-128);
    bytes.key("u16", GgufType::uint16).number<uint16_t>(65535).key("i16", GgufType::int16).number<int16_t>(-32768);
    bytes.key("u32", GgufType::uint32).number<uint32_t>(~0u).key("i32", GgufType::int32).number<int32_t>(-5);
    bytes.key("u64", GgufType::uint64).number<uint64_t>(~0ull).key("i64", GgufType::int64).number<int64_t>(-1);
    bytes.key("f32", GgufType::float32).number(1.5f).key("f64", GgufType::float64).number(-0.1);
    bytes.key("yes", GgufType::boolean).number<uint8_t>(1).key("no", GgufType::boolean).number<uint8_t>(0);
    bytes.key("text", GgufType::string).string(std::string_view("a\0\xff", 3));
    auto file = read(bytes);

    CHECK(file->version() == 3);
    CHECK(file->entries().size() == 13);
    CHECK(file->entries()[0].key == "u8");
    CHECK(value(file->get_uint("u8")) == 255);
    CHECK(value(file->get_uint("u16")) == 65535);
    CHECK(value(file->get_uint("u32")) == ~0u);
    CHECK(value(file->get_uint("u64")) == ~0ull);
    CHECK(std::get<int64_t>(file->find("i8")->value) == -128);
    CHECK(std::get<int64_t>(file->find("i16")->value) == -32768);
    CHECK(std::get<int64_t>(file->find("i32")->value) == -5);
    CHECK(std::get<int64_t>(file->find("i64")->value) == -1);
    CHECK(value(file->get_float("f32")) == 1.5);
    CHECK(value(file->get_float("f64")) == -0.1);
    CHECK(value(file->get_bool("yes")));
    CHECK_FALSE(value(file->get_bool("no")));
    CHECK(value(file->get_string("text")) == std::string_view("a\0\xff", 3));
}

TEST_CASE("gguf: typed reads tell absence from a wrong type") {
    Bytes bytes;
    bytes.head(0, 5).key("negative", GgufType::int32).number<int32_t>(-5).key("float", GgufType::float32).number(2.0f);
    bytes.key("positive", GgufType::int64).number<int64_t>(7).key("text", GgufType::string).string("x");
    bytes.array("large", GgufType::uint64, 1).number<uint64_t>(~0ull);
    auto file = read(bytes);

    Result<std::optional<uint64_t>> absent = file->get_uint("absent");
    REQUIRE(absent.ok());
    CHECK_FALSE(absent->has_value());
    CHECK(file->find("absent") == nullptr);
    CHECK(value(file->get_uint("positive")) == 7);
    auto refused = [&](const Status &status, std::string_view key) {
        CHECK(status.code() == Code::invalid_argument);
        CHECK(contains(status.message(), file->path().string()));
        CHECK(contains(status.message(), key));
    };
    refused(file->get_uint("negative").status(), "'negative' is -5");
    refused(file->get_uint("float").status(), "float32");
    refused(file->get_uint("text").status(), "'text'");
    refused(file->get_float("positive").status(), "int64");
    refused(file->get_bool("positive").status(), "'positive'");
    refused(file->get_string("float").status(), "'float'");
    refused(file->get_strings("text").status(), "'text'");
    refused(file->get_ints("text").status(), "'text'");
    refused(file->get_floats("large").status(), "an array of 1 x uint64");
    refused(file->get_ints("large").status(), "element 0 is 18446744073709551615");
}

TEST_CASE("gguf: arrays of every kind, empty and nested ones too") {
    Bytes bytes;
    bytes.head(0, 7).array("ints", GgufType::int16, 3).number<int16_t>(-1).number<int16_t>(2).number<int16_t>(3);
    bytes.array("floats", GgufType::float64, 2).number(0.5).number(-2.0);
    bytes.array("strings", GgufType::string, 2).string("").string("b");
    bytes.array("none", GgufType::uint32, 0).array("no strings", GgufType::string, 0);
    bytes.array("bools", GgufType::boolean, 2).number<uint8_t>(0).number<uint8_t>(1);
    bytes.array("nested", GgufType::array, 2)
        .number(uint32_t(GgufType::uint8))
        .number<uint64_t>(2)
        .number<uint16_t>(0x0201);
    bytes.number(uint32_t(GgufType::string)).number<uint64_t>(1).string("deep");
    auto file = read(bytes);

    CHECK(value(file->get_ints("ints")) == std::vector<int64_t>{-1, 2, 3});
    CHECK(value(file->get_floats("floats")) == std::vector<float>{0.5f, -2.0f});
    auto strings = value(file->get_strings("strings"));
    REQUIRE(strings.size() == 2);
    CHECK(strings[0].empty());
    CHECK(strings[1] == "b");
    CHECK(value(file->get_ints("none")).empty());
    CHECK(value(file->get_strings("no strings")).empty());
    CHECK_FALSE(file->get_ints("no strings").ok());
    CHECK_FALSE(file->get_ints("bools").ok());
    CHECK(std::get<bool>(gguf_element(std::get<GgufArray>(file->find("bools")->value), 1)));
    const auto &nested = std::get<GgufArray>(file->find("nested")->value);
    REQUIRE(nested.arrays.size() == 2);
    CHECK(nested.count == 2);
    CHECK(std::get<uint64_t>(gguf_element(nested.arrays[0], 1)) == 2);
    CHECK(nested.arrays[1].strings == std::vector<std::string_view>{"deep"});
}

TEST_CASE("gguf: tensors have reversed dimensions, their bytes, and their place behind the aligned table") {
    auto file = read(small_file());
    REQUIRE(file->tensors().size() == 2);
    const GgufTensor *a = file->find_tensor("a"), *b = file->find_tensor("b");
    REQUIRE(a != nullptr);
    REQUIRE(b != nullptr);
    CHECK(file->find_tensor("c") == nullptr);
    CHECK(a->type == DType::q8_0);
    CHECK(a->bytes == 34);
    CHECK(a->file_offset % 32 == 0);
    CHECK(b->shape == std::vector<int64_t>{2, 4});
    CHECK(b->bytes == 32);
    CHECK(b->file_offset == a->file_offset + 64);
    CHECK(file->data(*b).size() == 32);
    CHECK(file->data(*b).data() == file->mapping().data() + b->file_offset);
    CHECK(file->mapping().size() == b->file_offset + b->bytes);
}

TEST_CASE("gguf: version 2, a scalar tensor, and an alignment of the file's own") {
    Bytes bytes;
    bytes.head(1, 1, 2).key("general.alignment", GgufType::uint32).number<uint32_t>(256);
    bytes.tensor("scalar", {}, uint32_t(DType::f32), 256).data(260, 256);
    auto file = read(bytes);
    CHECK(file->version() == 2);
    CHECK(file->alignment() == 256);
    CHECK(file->tensors()[0].shape.empty());
    CHECK(file->tensors()[0].bytes == 4);
    CHECK(file->tensors()[0].file_offset == 512);
}

TEST_CASE("gguf: every truncation of a file is refused") {
    const std::string whole = small_file().out;
    read(small_file());
    for (size_t size = 0; size < whole.size(); ++size) {
        CAPTURE(size);
        check_refused(std::string_view(whole).substr(0, size), Code::invalid_argument, {});
    }
}

TEST_CASE("gguf: what is no regular little-endian GGUF file of a known version is told apart") {
    check_refused("", Code::invalid_argument, {"empty"});
    check_refused("GG", Code::invalid_argument, {"not a GGUF file"});
    check_refused(std::string_view("\x7f"
                                   "ELF\n\n\n\n"),
                  Code::invalid_argument, {"not a GGUF file", "\\x7fELF"});
    check_refused("version https://git-lfs.github.com/spec/v1\n", Code::invalid_argument, {"Git LFS pointer"});
    check_refused("lmggxxxxxxxxxxxxxxxx", Code::invalid_argument, {"GGML", "convert"});
    check_refused(Bytes().head(0, 0, 1).out, Code::unsupported, {"version 1"});
    check_refused(Bytes().head(0, 0, 4).out, Code::unsupported, {"version 4"});
    check_refused(Bytes().head(0, 0, __builtin_bswap32(3)).out, Code::unsupported, {"big-endian"});

    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    Status directory = Gguf::open(folder).status();
    CHECK(directory.code() == Code::invalid_argument);
    CHECK(contains(directory.message(), "directory"));
    Status missing = Gguf::open(folder / "tenon-no-such-file.gguf").status();
    CHECK(missing.code() == Code::not_found);
    CHECK(contains(missing.message(), "tenon-no-such-file.gguf"));

    TemporaryFile place("");
    std::filesystem::remove(place.path());
    REQUIRE(::mkfifo(place.path().c_str(), 0600) == 0);
    Status fifo = Gguf::open(place.path()).status();  // must not wait for a writer
    CHECK(fifo.code() == Code::invalid_argument);
    CHECK(contains(fifo.message(), "pipe"));
}

TEST_CASE("gguf: counts and lengths that the file can't hold are refused before memory is asked for") {
    for (uint64_t count :
         {k_huge - 1, k_huge, k_huge + 1, k_huge + 2, uint64_t(-1), uint64_t(-1) / 8 + 1, uint64_t(1) << 40}) {
        CAPTURE(count);
        check_refused(Bytes().head(count, 0).out, Code::invalid_argument, {"tensors"});
        check_refused(Bytes().head(0, count).out, Code::invalid_argument, {"metadata entries"});
        check_refused(Bytes().head(0, 1).number(count).data(64).out, Code::invalid_argument, {"key of entry 1"});
        check_refused(Bytes().head(0, 1).key("s", GgufType::string).number(count).data(64).out, Code::invalid_argument,
                      {"'s'"});
        for (uint32_t type = 0; type <= uint32_t(GgufType::float64); ++type) {
            check_refused(Bytes().head(0, 1).array("arr", GgufType(type), count).data(64).out, Code::invalid_argument,
                          {"'arr'", "past the end"});
        }
        check_refused(Bytes().head(1, 0).number(count).data(64).out, Code::invalid_argument, {"name of tensor 1"});
    }
}

TEST_CASE("gguf: damaged metadata is refused by the key's name") {
    auto entries = [](uint64_t count) { return Bytes().head(0, count); };
    auto twice =
        entries(3).key("k", GgufType::uint8).number<uint8_t>(0).key("other", GgufType::uint8).number<uint8_t>(0);
    check_refused(twice.key("k", GgufType::string).string("").out, Code::invalid_argument, {"'k'", "more than once"});
    check_refused(entries(1).key("k", GgufType(13)).data(64).out, Code::unsupported, {"'k'", "type 13"});
    check_refused(entries(1).array("k", GgufType(99), 1).data(64).out, Code::unsupported, {"'k'", "type 99"});
    check_refused(entries(1).key("k", GgufType::boolean).number<uint8_t>(2).out, Code::invalid_argument,
                  {"'k'", "bool"});
    check_refused(entries(1).array("k", GgufType::boolean, 2).number<uint16_t>(0x0301).out, Code::invalid_argument,
                  {"'k'", "element 1"});
    check_refused(entries(1).key("", GgufType::uint8).data(64).out, Code::invalid_argument, {"entry 1", "empty"});
    check_refused(entries(1).key(std::string(65536, 'k'), GgufType::uint8).data(64).out, Code::invalid_argument,
                  {"65536"});
    check_refused(entries(1).key("two\nlines\x1b[2J", GgufType(77)).data(64).out, Code::unsupported,
                  {"two\\nlines\\x1b[2J"});
    for (uint32_t alignment : {0u, 3u, 48u, ~0u}) {
        check_refused(entries(1).key("general.alignment", GgufType::uint32).number(alignment).out,
                      Code::invalid_argument, {"'general.alignment'", "power of two"});
    }
    check_refused(entries(1).key("general.alignment", GgufType::string).string("32").out, Code::invalid_argument,
                  {"'general.alignment'", "integer"});
    Bytes deep = entries(1);
    deep.array("k", GgufType::array, 1);
    for (int i = 0; i < 100000; ++i) deep.number(uint32_t(GgufType::array)).number<uint64_t>(1);
    check_refused(deep.out, Code::unsupported, {"'k'", "nested"});
}

TEST_CASE("gguf: damaged tensors are refused by name") {
    constexpr uint32_t f32 = uint32_t(DType::f32), q4_1 = uint32_t(DType::q4_1);
    auto one = [](std::vector<uint64_t> dimensions, uint32_t type, uint64_t offset) {
        return Bytes().head(1, 0).tensor("w", std::move(dimensions), type, offset).data(256).out;
    };
    check_refused(one({4}, 4, 0), Code::unsupported, {"'w'", "tensor type 4"});  // Q4_2, which the format dropped
    check_refused(one({4}, 0xffffffff, 0), Code::unsupported, {"'w'", "tensor type 4294967295"});
    check_refused(one({1, 1, 1, 1, 1, 1, 1, 1, 1}, f32, 0), Code::invalid_argument, {"'w'", "9 dimensions"});
    check_refused(one({4, 0}, f32, 0), Code::invalid_argument, {"'w'", "dimension 1 is 0"});
    check_refused(one({k_huge + 1}, f32, 0), Code::invalid_argument, {"'w'", "dimension 0 is -"});
    check_refused(one({33}, q4_1, 0), Code::invalid_argument, {"'w'", "blocks"});
    check_refused(one({}, q4_1, 0), Code::invalid_argument, {"'w'", "blocks"});
    check_refused(one({k_huge}, f32, 0), Code::invalid_argument, {"'w'", "overflows"});
    check_refused(one({uint64_t(1) << 32, uint64_t(1) << 32}, f32, 0), Code::invalid_argument, {"'w'", "overflows"});
    check_refused(one({4}, f32, 16), Code::invalid_argument, {"'w'", "multiple of the alignment"});
    check_refused(one({4}, f32, 256), Code::invalid_argument, {"'w'", "past the end"});
    check_refused(one({65}, f32, 0), Code::invalid_argument, {"'w'", "past the end"});
    check_refused(one({4}, f32, ~0ull - 31), Code::invalid_argument, {"'w'", "past the end"});
    check_refused(one({4}, f32, k_huge - 31), Code::invalid_argument, {"'w'", "past the end"});

    auto two = [](std::string_view name, uint64_t offset) {
        return Bytes().head(2, 0).tensor("w", {16}, f32, 0).tensor(name, {16}, f32, offset).data(256).out;
    };
    check_refused(two("w", 64), Code::invalid_argument, {"'w'", "more than once"});
    check_refused(two("v", 32), Code::invalid_argument, {"'w'", "'v'", "overlap"});
    check_refused(two("v", 0), Code::invalid_argument, {"'w'", "'v'", "overlap"});
    check_refused(two("", 64), Code::invalid_argument, {"tensor 2 of 2", "empty"});
}

TEST_CASE("escaped: one line of valid UTF-8, whatever the bytes") {
    CHECK(escaped("plain \xc3\xa9 \xf0\x9f\x99\x82") == "plain \xc3\xa9 \xf0\x9f\x99\x82");
    CHECK(escaped("a\nb\tc\x1b[0m\\") == "a\\nb\\tc\\x1b[0m\\");
    CHECK(escaped(escaped("a\nb\\")) == escaped("a\nb\\"));
    CHECK(escaped("\xff\xc0\x80\xed\xa0\x80") == "\\xff\\xc0\\x80\\xed\\xa0\\x80");
    CHECK(escaped("\xe2\x80\xae") == "\\u{202e}");
    CHECK(escaped("\xc3") == "\\xc3");
    CHECK(escaped("\xf0\x9f\x99g") == "\\xf0\\x9f\\x99g");
    CHECK(escaped("\xc3\xa9\xc3\xa9", 3) == "\xc3\xa9...");
    CHECK(escaped("abc", 3) == "abc");
}
