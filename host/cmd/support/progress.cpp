#include "cmd/support/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace tenon::cmd {

namespace {

constexpr uint64_t k_cells = 30;
constexpr auto k_first_after = std::chrono::milliseconds(200), k_next_after = std::chrono::milliseconds(50);

}  // namespace

ProgressBar::ProgressBar(bool wanted)
    : wanted_(wanted && ::isatty(STDERR_FILENO)), next_(Clock::now() + k_first_after) {}

void ProgressBar::update(std::string_view stage, uint64_t done, uint64_t total) {
    if (!wanted_ || total == 0 || Clock::now() < next_) return;
    next_ = Clock::now() + k_next_after;
    drawn_ = true;
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    const auto full = static_cast<size_t>(part * static_cast<double>(k_cells));
    fmt::print(stderr, "\r\033[K{} [{:<{}}] {:3.0f}%", stage, std::string(full, '#'), k_cells, part * 100);
    std::fflush(stderr);
}

void ProgressBar::clear() {
    if (!drawn_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
}

}  // namespace tenon::cmd
