// What one registry gives to all of its plugins: log, options, memory, cancel tokens, ops. Outlives the registry as
// long as a device of it lives.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "registry/cancel.h"
#include "tenon/op_set.h"

namespace tenon {

/// Counts bytes against a limit. Any thread.
class MemoryAccount {
public:
    explicit MemoryAccount(uint64_t limit_bytes) : limit_(limit_bytes) {}

    /// False, and nothing counted, where the limit (0: none) would be passed.
    bool take(uint64_t bytes) noexcept;
    void give_back(uint64_t bytes) noexcept { now_.fetch_sub(bytes, std::memory_order_relaxed); }

    uint64_t bytes_now() const noexcept { return now_.load(std::memory_order_relaxed); }
    uint64_t bytes_peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
    uint64_t allocations() const noexcept { return allocations_.load(std::memory_order_relaxed); }

private:
    const uint64_t limit_;
    std::atomic<uint64_t> now_{0}, peak_{0}, allocations_{0};
};

struct HostServices {
    HostServices(LogFunction log, std::map<std::string, std::string> plugin_options, uint64_t memory_limit_bytes)
        : logger(std::move(log)), options(std::move(plugin_options)), memory(memory_limit_bytes) {}

    const Logger logger;
    const std::map<std::string, std::string> options;  // "<plugin>.<key>"
    MemoryAccount memory;
    CancelTable cancel;
    OpSet ops;
};

}  // namespace tenon
