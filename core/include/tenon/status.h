// Errors as values: every fallible call of libtenon answers a Status or a Result<T>, want of memory included. What
// answers neither (names, lists, copies of values) throws at most std::bad_alloc.
#pragma once

#include <concepts>
#include <cstdint>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace tenon {

/// Why a call failed. The numbers are those of `tn_status` in the plugin ABI, so that a plugin's answer passes through.
enum class Code : int32_t {
    ok = 0,
    unimplemented = 1,
    invalid_argument = 2,
    invalid_state = 3,
    unsupported = 4,
    out_of_memory = 5,
    too_small = 6,
    not_found = 7,
    busy = 8,
    timeout = 9,
    cancelled = 10,
    device_lost = 11,
    denied = 12,
    internal = 13,
};

/// The code's name in words, e.g. "out of memory". Any thread.
std::string_view code_name(Code code) noexcept;

/// Success, or a code with a message that says what was wrong, where, and what would help. A value; any thread.
class [[nodiscard]] Status {
public:
    Status() = default;
    Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

    static Status invalid_argument(std::string message) { return {Code::invalid_argument, std::move(message)}; }
    static Status invalid_state(std::string message) { return {Code::invalid_state, std::move(message)}; }
    static Status unsupported(std::string message) { return {Code::unsupported, std::move(message)}; }
    static Status not_found(std::string message) { return {Code::not_found, std::move(message)}; }
    static Status out_of_memory(std::string message) { return {Code::out_of_memory, std::move(message)}; }
    static Status internal(std::string message) { return {Code::internal, std::move(message)}; }

    bool ok() const noexcept { return code_ == Code::ok; }
    Code code() const noexcept { return code_; }
    const std::string &message() const noexcept { return message_; }

    /// The same failure, told from further out: "where: message". A success stays as it is, and so does a failure for
    /// whose words there is no memory.
    Status in(std::string_view where) &&noexcept {
        return std::move(*this).in([&] { return std::string(where); });
    }
    /// With words that are made only for a failure: `where()` answers a string.
    template <std::invocable Where>
    Status in(Where &&where) &&noexcept {
        if (ok()) return std::move(*this);
        try {
            message_ = std::string(where()) + ": " + message_;
        } catch (const std::bad_alloc &) {
            // The code and the words so far say enough.
        }
        return std::move(*this);
    }

private:
    Code code_ = Code::ok;
    std::string message_;
};

/// A T, or the Status that says why there is none. Reading the value of a failure is a programming error.
template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : value_(std::move(value)) {}
    Result(Status status) : status_(std::move(status)) {
        if (status_.ok()) status_ = Status::internal("a Result was made from a success without a value");
    }

    bool ok() const noexcept { return value_.has_value(); }
    const Status &status() const &noexcept { return status_; }
    Status &&status() &&noexcept { return std::move(status_); }

    T &operator*() & { return *value_; }
    const T &operator*() const & { return *value_; }
    T &&operator*() && { return *std::move(value_); }
    T *operator->() { return &*value_; }
    const T *operator->() const { return &*value_; }

private:
    Status status_;
    std::optional<T> value_;
};

}  // namespace tenon

#define TENON_CONCAT_(a, b) a##b
#define TENON_CONCAT(a, b) TENON_CONCAT_(a, b)

/// Returns the failure to the caller, else goes on. For functions that answer a Status or a Result.
#define TENON_TRY(expression)                                                                        \
    do {                                                                                             \
        if (::tenon::Status tenon_status_ = (expression); !tenon_status_.ok()) return tenon_status_; \
    } while (false)

/// `TENON_ASSIGN(auto x, f());` — declares or sets x from a Result, or returns its failure.
#define TENON_ASSIGN(target, expression) TENON_ASSIGN_(TENON_CONCAT(tenon_result_, __LINE__), target, expression)
#define TENON_ASSIGN_(result, target, expression)        \
    auto result = (expression);                          \
    if (!result.ok()) return std::move(result).status(); \
    target = *std::move(result)
