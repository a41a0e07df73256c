#include "tenon/status.h"

namespace tenon {

std::string_view code_name(Code code) noexcept {
    switch (code) {
        case Code::ok: return "ok";
        case Code::unimplemented: return "unimplemented";
        case Code::invalid_argument: return "invalid argument";
        case Code::invalid_state: return "invalid state";
        case Code::unsupported: return "unsupported";
        case Code::out_of_memory: return "out of memory";
        case Code::too_small: return "too small";
        case Code::not_found: return "not found";
        case Code::busy: return "busy";
        case Code::timeout: return "timeout";
        case Code::cancelled: return "cancelled";
        case Code::device_lost: return "device lost";
        case Code::denied: return "denied";
        case Code::internal: return "internal error";
    }
    return "unknown status";
}

}  // namespace tenon
