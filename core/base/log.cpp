#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

namespace tenon {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
    switch (level) {
        case LogLevel::debug: return spdlog::level::debug;
        case LogLevel::info: return spdlog::level::info;
        case LogLevel::warning: return spdlog::level::warn;
        case LogLevel::error: return spdlog::level::err;
    }
    return spdlog::level::err;
}

}  // namespace

LogFunction stderr_log(LogLevel at_least) {
    // Not spdlog's registry of loggers, which is global: this one lives as long as the function that holds it.
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto logger = std::make_shared<spdlog::logger>("tenon", std::move(sink));
    logger->set_pattern("%n: %^%l%$: %v");
    logger->set_level(spdlog_level(at_least));
    logger->flush_on(spdlog::level::debug);
    return [logger](LogLevel level, std::string_view text) {
        logger->log(spdlog_level(level), spdlog::string_view_t(text.data(), text.size()));
    };
}

void Logger::write(LogLevel level, std::string_view text) const noexcept {
    try {
        function_(level, text);
    } catch (...) {
        // The application's own function failed, and there is nowhere else to say so.
    }
}

}  // namespace tenon
