// What a command prints on stdout: buffered, and never lost in silence.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tenon::cmd {

/// Collects a command's output and writes it to file descriptor 1. The first failure is kept: later writes do nothing,
/// `finish` tells it once. A reader that has gone (`tenon inspect model | head`) is no failure to tell, but ends the
/// command with k_failed all the same. One thread at a time. What wasn't finished or flushed isn't written.
class Output {
public:
    /// `command` is named in the message of `finish`.
    explicit Output(std::string_view command) : command_(command) { buffer_.reserve(k_buffer_bytes); }
    Output(const Output &) = delete;
    Output &operator=(const Output &) = delete;

    template <class... Args>
    bool print(fmt::format_string<Args...> format, Args &&...args) {
        fmt::format_to(std::back_inserter(buffer_), format, std::forward<Args>(args)...);
        return buffer_.size() < k_buffer_bytes ? ok() : flush();
    }
    bool write(std::string_view bytes) {
        buffer_ += bytes;
        return buffer_.size() < k_buffer_bytes ? ok() : flush();
    }
    /// Hands everything to the system, as after each piece of a streamed text. False once anything has failed: whoever
    /// computes what is printed can stop.
    bool flush();
    bool ok() const { return error_ == 0; }

    /// Flushes and answers the exit code: `exit_code`, or k_failed where anything couldn't be written.
    int finish(int exit_code = 0);

private:
    static constexpr size_t k_buffer_bytes = 1 << 16;

    std::string command_, buffer_;
    int error_ = 0;  // errno of the first failure
    bool told_ = false;
};

/// `value` on one line, no line feed behind it. Bytes that aren't UTF-8, as tokens of a byte-level vocabulary often
/// are, become U+FFFD; infinities and NaN, which JSON doesn't have, become null.
std::string json_text(const nlohmann::ordered_json &value);

}  // namespace tenon::cmd
