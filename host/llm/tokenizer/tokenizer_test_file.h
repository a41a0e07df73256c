// Small GGUF files with a tokenizer, for tests: a complete byte-level vocabulary whose parts a test can change.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "llm/gguf.h"

namespace tenon::llm::test {

/// The letter by which byte-level vocabularies write a byte.
inline std::string letter(int byte) {
    int point = byte;
    if (!((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD))) {
        point = 0x100;
        for (int b = 0; b < byte; ++b) point += !((b >= 0x21 && b <= 0x7E) || (b >= 0xA1 && b != 0xAD));
    }
    if (point < 0x80) return std::string(1, static_cast<char>(point));
    return {static_cast<char>(0xC0 | point >> 6), static_cast<char>(0x80 | (point & 0x3F))};
}

/// The keys of a file; each can be set or erased before open(). Byte b is token b.
class TokenizerFile {
public:
    std::vector<std::string> tokens, merges;
    std::vector<int32_t> types;
    std::map<std::string, std::string> values;  // key -> its bytes, type number first

    TokenizerFile() {
        for (int byte = 0; byte < 256; ++byte) add(letter(byte));
        text("tokenizer.ggml.model", "gpt2");
        text("tokenizer.ggml.pre", "gpt-2");
    }
    int32_t add(std::string token, int32_t type = 1) {
        tokens.push_back(std::move(token));
        types.push_back(type);
        return static_cast<int32_t>(tokens.size()) - 1;
    }
    /// Adds the token that the merge makes.
    int32_t merge(const std::string &left, const std::string &right) {
        merges.push_back(left + " " + right);
        return add(left + right);
    }
    void text(const std::string &key, std::string_view value) { values[key] = number<uint32_t>(8) + string(value); }
    void natural(const std::string &key, uint32_t value) { values[key] = number<uint32_t>(4) + number(value); }
    void boolean(const std::string &key, bool value) { values[key] = number<uint32_t>(7) + number<uint8_t>(value); }

    /// Writes the file and opens it; it is gone from the folder afterwards. `change` sees all keys before.
    std::shared_ptr<const Gguf> open(
        const std::function<void(std::map<std::string, std::string> &)> &change = {}) const {
        std::map<std::string, std::string> all = values;
        all["tokenizer.ggml.tokens"] = strings(tokens);
        all["tokenizer.ggml.token_type"] = integers(types);
        all["tokenizer.ggml.merges"] = strings(merges);
        if (change) change(all);
        std::string out = "GGUF" + number<uint32_t>(3) + number<uint64_t>(0) + number<uint64_t>(all.size());
        for (const auto &[key, value] : all) out += string(key) + value;
        out.resize((out.size() + 31) / 32 * 32);
        const auto path = std::filesystem::temp_directory_path() /
                          ("tenon-tokenizer-" + std::to_string(reinterpret_cast<uintptr_t>(&out)) + "-" +
                           std::to_string(std::hash<std::string>()(out)) + ".gguf");
        std::ofstream(path, std::ios::binary) << out;
        auto file = Gguf::open(path);
        std::filesystem::remove(path);
        INFO(file.status().message());
        REQUIRE(file.ok());
        return *file;
    }

    static std::string strings(const std::vector<std::string> &all) {
        std::string out = number<uint32_t>(9) + number<uint32_t>(8) + number<uint64_t>(all.size());
        for (const std::string &one : all) out += string(one);
        return out;
    }
    static std::string integers(const std::vector<int32_t> &all) {
        std::string out = number<uint32_t>(9) + number<uint32_t>(5) + number<uint64_t>(all.size());
        for (int32_t one : all) out += number(one);
        return out;
    }

private:
    template <class T>
    static std::string number(T value) {
        return {reinterpret_cast<const char *>(&value), sizeof value};
    }
    static std::string string(std::string_view text) { return number<uint64_t>(text.size()) + std::string(text); }
};

}  // namespace tenon::llm::test
