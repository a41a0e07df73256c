// What is refused of a model file before any device is asked for.
#include "llm/model.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace tenon;
using namespace tenon::llm;

namespace {

template <class T>
std::string number(T value) {
    return {reinterpret_cast<const char *>(&value), sizeof value};
}

/// What ModelFile::open says to a file that has these uint16 keys and nothing else.
Status opened(const std::vector<std::pair<std::string_view, uint16_t>> &keys) {
    std::string bytes = "GGUF" + number<uint32_t>(3) + number<uint64_t>(0) + number<uint64_t>(keys.size());
    for (const auto &[key, value] : keys) {
        bytes += number<uint64_t>(key.size());
        bytes += key;
        bytes += number(static_cast<uint32_t>(GgufType::uint16)) + number(value);
    }
    bytes.resize((bytes.size() + 31) / 32 * 32);
    const auto path = std::filesystem::temp_directory_path() / ("tenon-model-" + std::to_string(::getpid()) + ".gguf");
    std::ofstream(path, std::ios::binary) << bytes;
    Status status = ModelFile::open(path).status();
    std::filesystem::remove(path);
    return status;
}

bool has(const Status &status, std::string_view part) {
    return status.message().find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("model: a part of a split model is refused with the file, its number and how many there are") {
    for (const auto &[number, name] : {std::pair{0, "part 1 "}, {2, "part 3 "}}) {
        const Status status = opened({{"split.no", static_cast<uint16_t>(number)}, {"split.count", 3}});
        CAPTURE(status.message());
        CHECK(status.code() == Code::unsupported);
        CHECK(has(status, "tenon-model-"));
        CHECK(has(status, name));
        CHECK(has(status, "3 files"));
    }
    const Status unnumbered = opened({{"split.count", 2}});
    CHECK(unnumbered.code() == Code::unsupported);
    CHECK(has(unnumbered, "2 files"));
}

TEST_CASE("model: one that was split into one part is whole, and refused for what it lacks") {
    for (const uint16_t count : {uint16_t{0}, uint16_t{1}}) {
        const Status status = opened({{"split.no", uint16_t{0}}, {"split.count", count}});
        CAPTURE(status.message());
        CHECK(has(status, "general.architecture"));
    }
}
