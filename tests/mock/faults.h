// What goes wrong on demand: delays, and the n-th call of a kind that fails.
#ifndef TENON_TESTS_MOCK_FAULTS_H
#define TENON_TESTS_MOCK_FAULTS_H

#include <array>
#include <atomic>
#include <optional>
#include <string_view>

#include "tenon/plugin.hpp"

namespace mock {

/// splitmix64: each state gives another number, so that a seed is all there is to keep.
constexpr uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
inline constexpr uint64_t kMixStep = 0x9e3779b97f4a7c15u;

/// A sequence of random numbers, the same one for the same seed.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}
    uint64_t next() { return mix(state_ += kMixStep); }
    uint64_t below(uint64_t limit) { return next() % limit; }  // limit > 0
    bool chance(uint32_t percent) { return below(100) < percent; }

private:
    uint64_t state_;
};

/// The kinds of calls that can be made to fail.
enum class Call : uint8_t { kRun, kLost, kAlloc, kPrepare, kPlace, kBind, kInit, kSet, kGet, kCopy, kRecord };

/// Of each kind, in its order: the option that counts down, what the call answers, and in which words.
struct FailPoint {
    std::string_view option;
    tn_status status;
    const char *text;
};
inline constexpr std::array<FailPoint, 11> kFailPoints = {{
    {"fail_run", TN_INTERNAL, "the run failed on demand"},
    {"lost", TN_DEVICE_LOST, "the device was lost on demand"},
    {"fail_alloc", TN_OUT_OF_MEMORY, "allocation failed on demand"},
    {"fail_prepare", TN_OUT_OF_MEMORY, "prepare failed on demand"},
    {"fail_place", TN_INTERNAL, "place failed on demand"},
    {"fail_bind", TN_OUT_OF_MEMORY, "bind failed on demand"},
    {"fail_init", TN_OUT_OF_MEMORY, "init_tensor failed on demand"},
    {"fail_set", TN_INTERNAL, "set failed on demand"},
    {"fail_get", TN_INTERNAL, "get failed on demand"},
    {"fail_copy", TN_INTERNAL, "copy failed on demand"},
    {"fail_event", TN_OUT_OF_MEMORY, "recording the event failed on demand"},
}};

/// Of one device; any thread.
class Faults {
public:
    std::atomic<uint64_t> delay_us{0}, random{1};

    void pause();           // a random delay, at most delay_us
    void check(Call call);  // throws on the call that ends its countdown
    /// By the option of a kind of calls; false and nothing for any other option.
    bool set_countdown(std::string_view option, int64_t calls);
    std::optional<int64_t> countdown(std::string_view option) const;

private:
    std::array<std::atomic<int64_t>, kFailPoints.size()> left_{};
};

}  // namespace mock
#endif
