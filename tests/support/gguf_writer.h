// Makes small GGUF v3 files for tests, such as a model of a few kilobytes. Tensor data are zeros.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/dtype.h"

namespace tenon::test {

class GgufWriter {
public:
    GgufWriter &text(std::string_view key, std::string_view value) {
        return entry(key, 8, [&] { string(entries_, value); });
    }
    GgufWriter &natural(std::string_view key, uint32_t value) {
        return entry(key, 4, [&] { number(entries_, value); });
    }
    GgufWriter &real(std::string_view key, float value) {
        return entry(key, 6, [&] { number(entries_, value); });
    }
    GgufWriter &naturals(std::string_view key, const std::vector<uint32_t> &values) {
        return entry(key, 9, [&] {
            number<uint32_t>(entries_, 4);
            number<uint64_t>(entries_, values.size());
            for (const uint32_t value : values) number(entries_, value);
        });
    }
    /// `shape` row-major, as everywhere in Tenon; a tensor of this name that is there is replaced.
    GgufWriter &tensor(std::string name, std::vector<int64_t> shape, DType type = DType::f32) {
        remove(name);
        tensors_.push_back({std::move(name), std::move(shape), type});
        return *this;
    }
    GgufWriter &remove(std::string_view name) {
        std::erase_if(tensors_, [&](const Tensor &tensor) { return tensor.name == name; });
        return *this;
    }

    void write(const std::filesystem::path &path) const {
        std::string out = "GGUF";
        number<uint32_t>(out, 3);
        number<uint64_t>(out, tensors_.size());
        number<uint64_t>(out, count_);
        out += entries_;
        uint64_t offset = 0;
        for (const Tensor &tensor : tensors_) {
            string(out, tensor.name);
            number<uint32_t>(out, static_cast<uint32_t>(tensor.shape.size()));
            for (size_t i = tensor.shape.size(); i-- > 0;) number(out, static_cast<uint64_t>(tensor.shape[i]));
            number(out, static_cast<uint32_t>(tensor.type));
            number(out, offset);
            offset += padded(static_cast<uint64_t>(canonical_bytes(tensor.type, tensor.shape).value_or(0)));
        }
        out.resize(padded(out.size()) + offset);
        std::ofstream(path, std::ios::binary) << out;
    }

private:
    struct Tensor {
        std::string name;
        std::vector<int64_t> shape;
        DType type;
    };
    static uint64_t padded(uint64_t bytes) { return (bytes + 31) / 32 * 32; }
    template <class T>
    static void number(std::string &out, T value) {
        out.append(reinterpret_cast<const char *>(&value), sizeof value);
    }
    static void string(std::string &out, std::string_view text) {
        number<uint64_t>(out, text.size());
        out += text;
    }
    template <class F>
    GgufWriter &entry(std::string_view key, uint32_t type, F &&value) {
        string(entries_, key);
        number(entries_, type);
        value();
        ++count_;
        return *this;
    }

    std::string entries_;
    uint64_t count_ = 0;
    std::vector<Tensor> tensors_;
};

}  // namespace tenon::test
