// The plugin's entry: an instance with one adapter, "cpu".
#include "device.h"

namespace tenon::cpu {
namespace {

class CpuInstance final : public plugin::Instance {
public:
    void load(plugin::Registrar &registrar) override { registrar.add(std::make_unique<CpuAdapter>(*this)); }
};

}  // namespace
}  // namespace tenon::cpu

TENON_PLUGIN(tenon::cpu::CpuInstance, "cpu", "Tenon", TENON_VERSION, "6f1c2a54-0d37-4b8e-9a61-35c7e2f0b914",
             TN_PLUGIN_CLOSABLE)
