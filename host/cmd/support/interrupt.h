// Ctrl-C: the first one asks the work to stop, the second ends the process as if nobody had listened.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>

#include "tenon/registry.h"

namespace tenon::cmd {

/// While it lives, the first SIGINT or SIGTERM raises a cancel token, and the same signal again has its default effect.
/// One at a time in the process, since signals belong to the process. One thread.
class Interrupt {
public:
    explicit Interrupt(std::shared_ptr<Registry> registry);
    ~Interrupt();
    Interrupt(const Interrupt &) = delete;
    Interrupt &operator=(const Interrupt &) = delete;

    /// For the runs that shall stop.
    uint64_t token() const { return token_; }
    /// Whether a signal has come. Any thread.
    static bool raised();

private:
    std::shared_ptr<Registry> registry_;
    uint64_t token_;
    struct sigaction old_int_ {
    }, old_term_{};
};

}  // namespace tenon::cmd
