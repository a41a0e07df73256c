// Carries values from one device's memory to another's: directly where both devices agree, straight from the CPU's
// address where there is one, else by way of staging memory.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/log.h"
#include "sched/bound.h"

namespace tenon {

/// Which pairs of devices copy directly. A pair is tried once with a few bytes before it is relied on, so that a device
/// that claims it and gets it wrong is found: it is told of in the log, once, and goes by way of the host.
class Routes {
public:
    explicit Routes(uint32_t devices) : devices_(devices), known_(size_t(devices) * devices, Route::unknown) {}

    bool direct(uint32_t from, uint32_t to) const { return at(from, to) == Route::direct; }
    /// Tries the pair, if that hasn't been done. `stream` is of device `to` and idle. Fails only where memory for the
    /// trial can't be had.
    Status probe(const DeviceSet &devices, uint32_t from, uint32_t to, Stream &stream, const Logger &log);

private:
    enum class Route : uint8_t { unknown, direct, staged };
    Route at(uint32_t from, uint32_t to) const { return known_[size_t(from) * devices_ + to]; }
    uint32_t devices_;
    std::vector<Route> known_;
};

/// Host memory by way of which values go to one device; pieces of a large value take turns.
class Staging {
public:
    /// Makes room for values of `bytes`, in pieces of k_piece_bytes at most. Nothing is in flight.
    Status reserve(const std::shared_ptr<Device> &device, uint64_t bytes);
    /// Gets from the source at once, whole blocks at a time, and queues the rest.
    Status carry(Stream &stream, const Located &source, const Located &target, const Stored &what, uint64_t bytes);

private:
    static constexpr uint64_t k_piece_bytes = 16 << 20;
    struct Piece {
        std::vector<std::byte> memory;
        std::unique_ptr<Event> passed;  // the stream has taken what was here
    };
    std::array<Piece, 4> pieces_;
    size_t next_ = 0;
};

/// Queues one copy of the schedule on the stream of its target. Its source is there.
Status carry(const BoundGraph &graph, uint32_t copy, uint32_t slot, Stream &stream, const Routes &routes,
             Staging &staging);

}  // namespace tenon
