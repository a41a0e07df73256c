// A LogFunction made safe to call from anywhere: what it throws is dropped, and lines below a level aren't even
// formatted.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "tenon/log.h"

namespace tenon {

/// Immutable once made; any thread.
class Logger {
public:
    /// An empty function: stderr, warnings and errors only.
    explicit Logger(LogFunction function) : function_(function ? std::move(function) : stderr_log(LogLevel::warning)) {}

    /// Never throws: a log line that can't be made or written is lost.
    void write(LogLevel level, std::string_view text) const noexcept;

    template <class... A>
    void log(LogLevel level, fmt::format_string<A...> format, A &&...args) const noexcept {
        try {
            write(level, fmt::format(format, std::forward<A>(args)...));
        } catch (...) {
            write(level, "a log line could not be formatted");
        }
    }

private:
    LogFunction function_;
};

}  // namespace tenon
