// For the plugin's tests: random data, running one problem on a team, and comparing with float64.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernel.h"
#include "team.h"

namespace tenon::cpu::testing {

// Bytes of a tensor at an address that is a multiple of its element's size and of nothing more.
class Bytes {
public:
    Bytes() = default;
    explicit Bytes(size_t size, size_t misalign = 0) : store_(size + misalign + 64), skip_(misalign), size_(size) {}
    std::byte *data() { return store_.data() + skip_; }
    const std::byte *data() const { return store_.data() + skip_; }
    size_t size() const { return size_; }
    template <class T>
    T *as() {
        return reinterpret_cast<T *>(data());
    }
    template <class T>
    const T *as() const {
        return reinterpret_cast<const T *>(data());
    }
    bool operator==(const Bytes &other) const {
        return size_ == other.size_ && std::memcmp(data(), other.data(), size_) == 0;
    }

private:
    std::vector<std::byte> store_;
    size_t skip_ = 0, size_ = 0;
};

inline int64_t span_bytes(const Operand &o) {
    if (o.elements() == 0) return 0;
    const Block block = block_of(o.type);
    int64_t end = block.bytes;
    for (uint32_t i = 0; i < o.rank; ++i) {
        const int64_t steps = i + 1 == o.rank ? o.shape[i] / block.elements : o.shape[i];
        end += (steps - 1) * o.stride[i];
    }
    return end;
}

class Random {
public:
    explicit Random(uint32_t seed = 1) : engine_(seed) {}
    float normal(float deviation = 1.0f) { return std::normal_distribution<float>(0, deviation)(engine_); }
    int64_t whole(int64_t lo, int64_t hi) { return std::uniform_int_distribution<int64_t>(lo, hi)(engine_); }

    Bytes f32(const Operand &o, float deviation = 1.0f) {
        Bytes bytes(size_t(span_bytes(o)), 4);
        for (size_t i = 0; i < bytes.size() / 4; ++i) bytes.as<float>()[i] = normal(deviation);
        return bytes;
    }
    // Weights of any type: random bits, with the f16 scales of quantised blocks (and f16, bf16 elements) of usual size.
    Bytes weights(const Operand &o, size_t misalign);
    static Bytes i32(std::initializer_list<int32_t> values) {
        Bytes bytes(values.size() * 4);
        std::copy(values.begin(), values.end(), bytes.as<int32_t>());
        return bytes;
    }

private:
    std::mt19937 engine_;
};

// Element of an f32 operand by its row-major index, as float64.
double element(const Operand &o, const std::byte *base, int64_t index);
// All elements of an operand of any type of types/, by the plain decoder.
std::vector<double> decoded(const Operand &o, const std::byte *base);

// A team of that many threads, made once.
Team &team_of(unsigned threads);

// Runs the problem as a plan would: the op's table row, scratch filled with rubbish, outputs filled with rubbish unless
// given. Checks that it isn't refused.
std::vector<Bytes> run(const Problem &problem, const std::vector<const Bytes *> &inputs, Features features,
                       unsigned threads = 1);
// The same with outputs prepared by the caller (in-place ops).
void run_on(const Kernel &kernel, const std::vector<const std::byte *> &inputs, const std::vector<std::byte *> &outputs,
            unsigned threads);

// Squared error relative to the squares of what is expected.
double nmse(const std::vector<double> &expected, const float *got);

// Every type that has a decoder.
std::vector<uint32_t> weight_types();

// The instruction sets of this machine, the reference first.
std::vector<Features> feature_sets();

template <class P>
P params() {
    P p{};
    p.struct_size = sizeof(P);
    return p;
}

}  // namespace tenon::cpu::testing
