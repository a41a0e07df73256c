// A bar on the terminal for what takes noticeable time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace tenon::cmd {

/// Draws on stderr, if that is a terminal and `wanted`; appears only after a while, so that short work shows none, and
/// is wiped away at its end. One thread.
class ProgressBar {
public:
    explicit ProgressBar(bool wanted);
    ~ProgressBar() { clear(); }
    ProgressBar(const ProgressBar &) = delete;
    ProgressBar &operator=(const ProgressBar &) = delete;

    /// `stage` says what is going on; each has its own `total`.
    void update(std::string_view stage, uint64_t done, uint64_t total);
    void clear();

private:
    using Clock = std::chrono::steady_clock;
    bool wanted_, drawn_ = false;
    Clock::time_point next_;
};

}  // namespace tenon::cmd
