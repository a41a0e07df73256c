// Pairs a plugin's status with the text that it gave to the host's error sink on the same thread (D02).
#pragma once

#include <string_view>
#include <utility>

#include "tenon/abi.h"
#include "tenon/status.h"

namespace tenon {

/// Forgets the thread's text: to be called before a call into a plugin. Never allocates.
void clear_plugin_text() noexcept;
/// The sink's side: keeps the text for the thread, cut to what fits; null is no text. Never allocates.
void set_plugin_text(const char *text) noexcept;

/// A failed status as the host tells it, "cpu: <the plugin's text>"; without a text the call's name and the status' say
/// what can be said; without memory only the code is right. A status that the ABI doesn't list is internal (D11). Takes the
/// thread's text.
Status plugin_failure(std::string_view plugin, std::string_view call, tn_status status) noexcept;

/// Calls into a plugin through its table. Allocates nothing on success.
template <class... P, class... A>
Status call_plugin(std::string_view plugin, std::string_view name, tn_status (*function)(P...), A &&...args) {
    clear_plugin_text();
    tn_status status = function(std::forward<A>(args)...);
    if (status == TN_OK) [[likely]]
        return {};
    return plugin_failure(plugin, name, status);
}

}  // namespace tenon
