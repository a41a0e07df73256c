// The two-call pattern of the ABI ("Lists"), with what a plugin answers kept within bounds.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <string>
#include <vector>

#include "tenon/status.h"

namespace tenon {

inline constexpr uint64_t k_max_list_elements = uint64_t(1) << 24;
inline constexpr uint64_t k_max_text_bytes = uint64_t(1) << 20;

/// `call(&count, out)` answers a Status. A list may grow between the two calls, so it is asked again a few times.
/// `make` gives the element that the plugin fills (with struct_size set, where it is a struct). internal: longer than
/// `most`, or never the same length.
template <class T, class Call>
Status read_list(std::vector<T> &out, const char *what, Call call, T make = {}, uint64_t most = k_max_list_elements) {
    for (int attempt = 0; attempt < 4; ++attempt) {
        uint64_t count = 0;
        TENON_TRY(call(&count, static_cast<T *>(nullptr)));
        if (count > most) {
            return Status::internal(fmt::format("the plugin lists {} {}, where {} is the most", count, what, most));
        }
        try {
            out.assign(count, make);
        } catch (const std::bad_alloc &) {
            return Status::out_of_memory(fmt::format("{} {}", count, what));
        }
        if (count == 0) return {};
        const uint64_t room = count;
        Status status = call(&count, out.data());
        if (status.code() == Code::too_small) continue;
        TENON_TRY(std::move(status));
        if (count > room)
            return Status::internal(fmt::format("the plugin wrote {} {} where {} had room", count, what, room));
        out.resize(count);
        return {};
    }
    return Status::internal(fmt::format("the plugin's list of {} changes with every call", what));
}

/// A text by the same pattern, its final 0 counted by the plugin and not kept.
template <class Call>
Status read_text(std::string &out, Call call) {
    std::vector<char> text;
    TENON_TRY(read_list<char>(text, "bytes of text", call, '\0', k_max_text_bytes));
    out.assign(text.begin(), text.end());
    if (!out.empty() && out.back() == '\0') out.pop_back();
    return {};
}

}  // namespace tenon
