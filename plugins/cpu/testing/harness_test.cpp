#include "testing/harness.h"

#include <map>

#include "type.h"

namespace tenon::cpu::testing {

Bytes Random::weights(const Operand &o, size_t misalign) {
    Bytes bytes(size_t(span_bytes(o)), misalign);
    for (size_t i = 0; i < bytes.size(); ++i) bytes.as<uint8_t>()[i] = uint8_t(whole(0, 255));
    const auto put = [&](size_t at, uint16_t half) { std::memcpy(bytes.data() + at, &half, 2); };
    const auto step = size_t(block_of(o.type).bytes);
    // Of a scale of six-bit scales, and of one of six-bit minima.
    const auto put_scale = [&](size_t at) { put(at, f32_to_f16(normal(0.003f))); };
    const auto put_minima = [&](size_t at) { put(at, f32_to_f16(normal(0.01f))); };
    for (size_t at = 0; at + step <= bytes.size(); at += step) {
        const float value = normal(0.05f);
        switch (o.type) {
            case TN_TYPE_ID_F32: std::memcpy(bytes.data() + at, &value, 4); break;
            case TN_TYPE_ID_BF16: put(at, f32_to_bf16(value)); break;
            case TN_TYPE_ID_Q2_K: put_scale(at + 80), put_minima(at + 82); break;
            case TN_TYPE_ID_Q3_K: put_scale(at + 108); break;
            case TN_TYPE_ID_Q4_K:
            case TN_TYPE_ID_Q5_K: put_scale(at), put_minima(at + 2); break;
            case TN_TYPE_ID_Q6_K: put_scale(at + 208); break;
            case TN_TYPE_ID_Q4_1:
            case TN_TYPE_ID_Q5_1: put(at + 2, f32_to_f16(normal(0.3f))); [[fallthrough]];
            default: put(at, f32_to_f16(value)); break;
        }
    }
    return bytes;
}

double element(const Operand &o, const std::byte *base, int64_t index) {
    const int64_t n = o.last();
    return double(*reinterpret_cast<const float *>(base + o.row_offset(index / n) + index % n * o.last_stride()));
}

std::vector<double> decoded(const Operand &o, const std::byte *base) {
    std::vector<double> all;
    std::vector<float> row(size_t(o.last()));
    const TypeRow &plain = choose(*find_type(o.type), isa_reference);
    for (int64_t r = 0; r < o.rows(); ++r) {
        plain.decode(base + o.row_offset(r), row.data(), o.last());
        all.insert(all.end(), row.begin(), row.end());
    }
    return all;
}

Team &team_of(unsigned threads) {
    static std::map<unsigned, Team> teams;
    Team &team = teams[threads];
    REQUIRE(team.resize(threads) == "");
    return team;
}

void run_on(const Kernel &kernel, const std::vector<const std::byte *> &inputs, const std::vector<std::byte *> &outputs,
            unsigned threads) {
    constexpr size_t guard = 64;
    std::vector<std::byte> scratch(kernel.scratch_bytes() + 64 + guard, std::byte(0xa5));
    std::byte *at = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    struct OneKernel final : Job {
        OneKernel(const Kernel &k, Args a) : kernel(k), args(a) {}
        int64_t next() noexcept override {
            while (++phase < kernel.phases()) {
                if (kernel.pieces(phase) > 0) return kernel.pieces(phase);
            }
            return 0;
        }
        void piece(int64_t i) noexcept override { kernel.piece(args, phase, i); }
        const Kernel &kernel;
        Args args;
        int phase = -1;
    } job(kernel, {inputs.data(), outputs.data(), at});
    team_of(threads).run(job);
    for (const std::byte *end = at + kernel.scratch_bytes(); end < scratch.data() + scratch.size(); ++end) {
        REQUIRE(*end == std::byte(0xa5));
    }
}

std::vector<Bytes> run(const Problem &problem, const std::vector<const Bytes *> &inputs, Features features,
                       unsigned threads) {
    const Op *op = find_op(problem.op);
    REQUIRE(op != nullptr);
    REQUIRE(op->refuse(problem) == "");
    std::vector<Bytes> outputs;
    std::vector<const std::byte *> in;
    std::vector<std::byte *> out;
    for (const Bytes *bytes : inputs) in.push_back(bytes != nullptr ? bytes->data() : nullptr);
    for (const Operand &o : problem.out) {
        Bytes bytes(size_t(span_bytes(o)), size_t(block_of(o.type).bytes));
        std::memset(bytes.data(), 0xa5, bytes.size());
        outputs.push_back(std::move(bytes));
    }
    for (Bytes &bytes : outputs) out.push_back(bytes.data());
    run_on(*op->make(problem, features), in, out, threads);
    return outputs;
}

double nmse(const std::vector<double> &expected, const float *got) {
    double error = 0, power = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        error += (expected[i] - double(got[i])) * (expected[i] - double(got[i]));
        power += expected[i] * expected[i];
    }
    return power == 0 ? error : error / power;
}

std::vector<uint32_t> weight_types() {
    std::vector<uint32_t> types;
#define TN_DTYPE(id, NAME, name, block_elements, block_bytes) \
    if (find_type(id) != nullptr) types.push_back(id);
#include "tenon/dtypes.def"
#undef TN_DTYPE
    return types;
}

std::vector<Features> feature_sets() {
    std::vector<Features> sets = {isa_reference};
    if (detect_isa() != isa_reference) sets.push_back(detect_isa());
    return sets;
}

}  // namespace tenon::cpu::testing
