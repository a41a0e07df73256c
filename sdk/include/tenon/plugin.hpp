// Tenon's C++ SDK: write classes, get the C tables of tenon/abi.h. Header-only, C++20, depends on nothing but the
// standard library and threads. sdk/README.md is the guide; the classes to derive from are in plugin/objects.hpp
// (Instance, Adapter, Device, BufferType, Buffer) and plugin/plan.hpp (Plan).
//
//   class Acme : public tenon::plugin::Instance { void load(tenon::plugin::Registrar &r) override { ... } };
//   TENON_PLUGIN(Acme, "acme", "Acme Inc.", "1.2.0", "00112233-4455-6677-8899-aabbccddeeff", TN_PLUGIN_CLOSABLE)
//
// Ready made: streams and events with poison and rounds, host memory, placing and binding, the discipline of sizes,
// strides and lists, object counting, and exceptions stopped at the border.
#ifndef TENON_PLUGIN_HPP
#define TENON_PLUGIN_HPP

#include "tenon/plugin/root.hpp"

/// Once in a plugin, at namespace scope. InstanceClass: derived from tenon::plugin::Instance, default-constructible.
/// guid: a UUID as text, the same in all versions of the plugin. flags: TN_PLUGIN_.
#define TENON_PLUGIN(InstanceClass, name, vendor, version, guid, flags)                                        \
    extern "C" TN_EXPORT tn_status tn_plugin_query_v1(const tn_host *host, const tn_plugin **out) {            \
        using Root = ::tenon::plugin::detail::Root<InstanceClass, (flags)>;                                    \
        static constexpr ::tenon::plugin::PluginInfo info = {name, ::tenon::plugin::detail::parse_guid(guid)}; \
        static constexpr tn_plugin table = Root::table(info, vendor, version, &Root::template load<info>);     \
        return ::tenon::plugin::detail::query(host, table, out);                                               \
    }

#endif
