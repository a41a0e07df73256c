// Errors inside a plugin are exceptions; at the border each becomes a status and a text. This file is that border.
#ifndef TENON_PLUGIN_ERROR_HPP
#define TENON_PLUGIN_ERROR_HPP

#include <concepts>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

#include "tenon/abi.h"

namespace tenon::plugin {

/// What plugin code throws to answer a call with a status of its own choice. Any other exception is mapped:
/// std::bad_alloc to TN_OUT_OF_MEMORY, all else to TN_INTERNAL with what() as its text.
class Error : public std::runtime_error {
public:
    Error(tn_status status, const std::string &text) : std::runtime_error(text), status_(status) {}
    tn_status status() const noexcept { return status_; }

private:
    tn_status status_;
};

namespace detail {
inline void append(std::string &to, std::string_view text) {
    to += text;
}
template <std::integral T>
void append(std::string &to, T number) {
    to += std::to_string(number);
}
}  // namespace detail

/// Texts and whole numbers, one after the other.
template <class... Parts>
std::string join(const Parts &...parts) {
    std::string text;
    (detail::append(text, parts), ...);
    return text;
}

/// Throws Error with the joined parts as its text.
template <class... Parts>
[[noreturn]] void fail(tn_status status, const Parts &...parts) {
    throw Error(status, join(parts...));
}

namespace detail {

/// A failure that can be kept without allocating: streams and events hold one.
struct Failure {
    tn_status status = TN_OK;
    char text[240] = {};

    void set(tn_status code, const char *what) noexcept {
        status = code;
        std::snprintf(text, sizeof text, "%s", what);
    }
};

/// D11: what the header doesn't list is TN_INTERNAL; a failure is never TN_OK.
constexpr tn_status listed(tn_status status) noexcept {
    return status > TN_OK && status <= TN_INTERNAL ? status : TN_INTERNAL;
}

/// D02: these four need no text.
constexpr bool needs_text(tn_status status) noexcept {
    return status != TN_OK && status != TN_UNIMPLEMENTED && status != TN_TOO_SMALL && status != TN_TIMEOUT;
}

/// Runs body; whatever it throws arrives in out. True if nothing was thrown.
template <class Body>
bool attempt(Failure &out, Body &&body) noexcept {
    try {
        body();
        return true;
    } catch (const Error &e) {
        out.set(listed(e.status()), e.what());
    } catch (const std::bad_alloc &) {
        out.set(TN_OUT_OF_MEMORY, "out of host memory");
    } catch (const std::system_error &e) {  // no more threads, handles ...
        out.set(e.code() == std::errc::resource_unavailable_try_again ? TN_OUT_OF_MEMORY : TN_INTERNAL, e.what());
    } catch (const std::exception &e) {
        out.set(TN_INTERNAL, e.what());
    } catch (...) {
        out.set(TN_INTERNAL, "an exception of unknown type");
    }
    return false;
}

}  // namespace detail
}  // namespace tenon::plugin
#endif
