// Where messages that aren't errors go: a function that the application passes in. Nothing global.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tenon/abi.h"

namespace tenon {

enum class LogLevel : uint32_t {
    debug = TN_LOG_DEBUG,
    info = TN_LOG_INFO,
    warning = TN_LOG_WARNING,
    error = TN_LOG_ERROR
};

/// Takes one line without its newline; called from any thread, also at the same time. The text is printable UTF-8.
using LogFunction = std::function<void(LogLevel, std::string_view)>;

/// Writes lines of `at_least` and above to stderr, coloured where that is a terminal. Thread-safe.
LogFunction stderr_log(LogLevel at_least);

}  // namespace tenon
