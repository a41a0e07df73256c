// The matrix kernels of the CPU plugin at SmolLM2's shapes, for every weight type, token count and instruction set, on
// the cores that the process may use; and the rate at which the machine reads memory, to compare with.
//
// Weights lie in a pool larger than the last-level cache, and each pass takes the next copy, as a model's layers do; so
// bytes_per_second is what weights are read at. A kernel's result is compared with the reference row before it is
// timed.
//   bench_kernels --benchmark_filter='linear/q4_1.*tokens:1/'
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernel.h"
#include "team.h"
#include "type.h"

namespace tenon::cpu {
namespace {

constexpr int64_t k_pool_bytes = int64_t(96) << 20;

struct Free {
    void operator()(void *p) const { std::free(p); }
};
using Memory = std::unique_ptr<std::byte, Free>;

Memory allocate(int64_t bytes) {
    return Memory(static_cast<std::byte *>(std::aligned_alloc(4096, size_t((bytes + 4095) / 4096 * 4096))));
}

// Random weights with scales of usual size.
void fill(uint32_t type, std::byte *to, int64_t bytes) {
    std::minstd_rand random(7);
    for (int64_t i = 0; i + 4 <= bytes; i += 4) {
        const uint32_t word = uint32_t(random()) * 2654435761u;
        std::memcpy(to + i, &word, 4);
    }
    const int64_t step = block_of(type).bytes;
    const bool plain = block_of(type).elements == 1;
    for (int64_t at = 0; at + step <= bytes; at += step) {
        const float value = 0.02f * (1 + float(random() % 100) / 100) * (plain && random() % 2 != 0 ? -1.0f : 1.0f);
        const uint16_t half = type == TN_TYPE_ID_BF16 ? f32_to_bf16(value) : f32_to_f16(value),
                       min = f32_to_f16(-8 * value);
        if (type == TN_TYPE_ID_F32) {
            std::memcpy(to + at, &value, 4);
        } else {
            std::memcpy(to + at, &half, 2);
        }
        if (type == TN_TYPE_ID_Q4_1) std::memcpy(to + at + 2, &min, 2);
    }
}

Team &team() {
    static Team all;
    static const std::string problem = all.resize(usable_cores());
    return all;
}

// One pass of a kernel, as a plan runs it.
class Pass final : public Job {
public:
    Pass(const Kernel &kernel, Args args) : kernel_(kernel), args_(args) {}
    int64_t next() noexcept override {
        while (++phase_ < kernel_.phases()) {
            if (kernel_.pieces(phase_) > 0) return kernel_.pieces(phase_);
        }
        return 0;
    }
    void piece(int64_t i) noexcept override { kernel_.piece(args_, phase_, i); }

private:
    const Kernel &kernel_;
    Args args_;
    int phase_ = -1;
};

void run(const Kernel &kernel, const std::byte *x, const std::byte *w, float *y, std::byte *scratch) {
    const std::byte *in[] = {x, w};
    std::byte *out[] = {reinterpret_cast<std::byte *>(y)};
    Pass pass(kernel, {in, out, scratch});
    team().run(pass);
}

// Squared error relative to the squares of what is expected.
double nmse(const std::vector<float> &expected, const std::vector<float> &got) {
    double error = 0, power = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        error += std::pow(double(expected[i]) - double(got[i]), 2);
        power += std::pow(double(expected[i]), 2);
    }
    return error / power;
}

void linear(benchmark::State &state, uint32_t type, int64_t tokens, int64_t in, int64_t out, bool exact,
            Features features) {
    Problem p;
    p.op = TN_OP_LINEAR;
    p.exact = exact;
    p.in = {Operand::dense(TN_TYPE_ID_F32, {tokens, in}), Operand::dense(type, {out, in})};
    p.out = {Operand::dense(TN_TYPE_ID_F32, {tokens, out})};
    const Op &op = *find_op(TN_OP_LINEAR);
    if (const std::string why = op.refuse(p); !why.empty()) return state.SkipWithError(why.c_str());

    const int64_t bytes = out * p.in[1].stride[0], stride = (bytes + 63) / 64 * 64;
    const int64_t copies = tokens == 1 ? std::max<int64_t>(1, k_pool_bytes / stride) : 1;
    const Memory weights = allocate(copies * stride), x = allocate(tokens * in * 4);
    fill(type, weights.get(), bytes);
    for (int64_t i = 1; i < copies; ++i) std::memcpy(weights.get() + i * stride, weights.get(), size_t(bytes));
    std::minstd_rand random(3);
    for (int64_t i = 0; i < tokens * in; ++i) reinterpret_cast<float *>(x.get())[i] = float(random() % 2001) / 1000 - 1;

    const auto kernel = op.make(p, features), reference = op.make(p, isa_reference);
    const Memory scratch = allocate(int64_t(kernel->scratch_bytes()) + 64);
    std::vector<float> y(size_t(tokens * out)), expected(y.size());
    run(*reference, x.get(), weights.get(), expected.data(), nullptr);
    run(*kernel, x.get(), weights.get(), y.data(), scratch.get());
    if (!(nmse(expected, y) <= (exact ? 1e-10 : 3e-4)))
        return state.SkipWithError("the result differs from the reference row's");

    int64_t copy = 0;
    for (auto _ : state) {
        run(*kernel, x.get(), weights.get() + copy * stride, y.data(), scratch.get());
        copy = (copy + 1) % copies;
    }
    state.SetBytesProcessed(state.iterations() * bytes);
    state.counters["GOP/s"] =
        benchmark::Counter(2e-9 * double(tokens * in * out), benchmark::Counter::kIsIterationInvariantRate);
}

// Sums memory, `streams` places at once in each thread's part.
class Read final : public Job {
public:
    Read(const std::byte *from, int64_t bytes, int64_t streams) : from_(from), lines_(bytes / 64), streams_(streams) {}
    int64_t next() noexcept override { return std::exchange(pieces_, 0); }
    void piece(int64_t i) noexcept override {
        const int64_t each = lines_ / team().threads() / streams_;
        const std::byte *base = from_ + i * each * streams_ * 64;
        uint64_t sums[8] = {};
        for (int64_t line = 0; line < each; ++line) {
            for (int64_t s = 0; s < streams_; ++s) {
                const std::byte *at = base + (s * each + line) * 64;
                __builtin_prefetch(at + 2048);
                for (int64_t k = 0; k < 8; ++k) {
                    uint64_t word = 0;
                    std::memcpy(&word, at + 8 * k, 8);
                    sums[k] += word;
                }
            }
        }
        benchmark::DoNotOptimize(sums);
    }

private:
    const std::byte *from_;
    int64_t lines_, streams_, pieces_ = team().threads();
};

void read_memory(benchmark::State &state) {
    const Memory memory = allocate(2 * k_pool_bytes);
    std::memset(memory.get(), 1, size_t(2 * k_pool_bytes));
    for (auto _ : state) {
        Read job(memory.get(), 2 * k_pool_bytes, state.range(0));
        team().run(job);
    }
    state.SetBytesProcessed(state.iterations() * 2 * k_pool_bytes);
}

void register_all() {
    benchmark::RegisterBenchmark("read_memory/streams", read_memory)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->UseRealTime();
    const std::pair<const char *, Features> sets[] = {{"reference", isa_reference}, {"avx2", isa_avx2}};
    const std::pair<int64_t, int64_t> shapes[] = {{576, 576}, {576, 1536}, {1536, 576}, {576, 49152}};
    for (uint32_t type :
         {TN_TYPE_ID_Q4_1, TN_TYPE_ID_Q8_0, TN_TYPE_ID_Q4_0, TN_TYPE_ID_F16, TN_TYPE_ID_BF16, TN_TYPE_ID_F32}) {
        for (const auto &[in, out] : shapes) {
            for (int64_t tokens : {1, 16, 512}) {
                const bool head = out > 10000;
                if (head && (type != TN_TYPE_ID_Q8_0 || tokens == 512)) continue;
                for (const auto &[name, features] : sets) {
                    if ((features & ~detect_isa()) != 0 || (features == isa_reference && tokens > 16)) continue;
                    for (bool exact : {false, true}) {
                        if (exact && features == isa_reference) continue;
                        const std::string title = "linear/" + type_name(type) + "/" + name +
                                                  (exact ? "/exact" : "/fast") + "/tokens:" + std::to_string(tokens) +
                                                  "/" + std::to_string(in) + "x" + std::to_string(out);
                        const auto body = [=, t = type, i = in, o = out, f = features](benchmark::State &state) {
                            linear(state, t, tokens, i, o, exact, f);
                        };
                        benchmark::RegisterBenchmark(title.c_str(), body)->UseRealTime();
                    }
                }
            }
        }
    }
}

}  // namespace
}  // namespace tenon::cpu

int main(int argc, char **argv) {
    tenon::cpu::register_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
