#include "cmd/support/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <system_error>

#include "cmd/command.h"

namespace tenon::cmd {

bool Output::flush() {
    std::string_view left = buffer_;
    while (error_ == 0 && !left.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, left.data(), left.size());
        if (written >= 0) {
            left.remove_prefix(size_t(written));
        } else if (errno == EAGAIN) {
            // Someone who shares the terminal or pipe with us made it non-blocking.
            pollfd ready{STDOUT_FILENO, POLLOUT, 0};
            if (::poll(&ready, 1, -1) < 0 && errno != EINTR) error_ = errno;
        } else if (errno != EINTR) {
            error_ = errno;
        }
    }
    buffer_.clear();
    return ok();
}

int Output::finish(int exit_code) {
    if (flush()) return exit_code;
    if (error_ == EPIPE || told_) return k_failed;
    told_ = true;
    return fail(command_, Status::internal("the output can't be written: " + std::generic_category().message(error_)));
}

std::string json_text(const nlohmann::ordered_json &value) {
    return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tenon::cmd
