#include "device.h"

#include <unistd.h>

#include <fstream>

#include "plan.h"

namespace tenon::cpu {
namespace {

// Offsets of tensors in a GGUF file are multiples of this, so that its pages can be used in place.
constexpr uint64_t k_alignment = 32;

Operand operand_of(const plugin::ValueView &value) {
    Operand o;
    o.type = value.type;
    o.rank = value.rank;
    o.shape = value.shape;
    o.stride = value.stride;
    return o;
}

// Why a value can't be used where it lies; empty if it can.
std::string unreachable(const plugin::GraphView &graph, uint32_t value, const char *what, size_t i) {
    const plugin::BufferTypeView *type = graph.buffer_type_of(value);
    if (type == nullptr || type->is_plain_host()) return {};
    return plugin::join(what, " ", i, " lies in '", type->name, "', which the CPU can't address or which is packed");
}

unsigned parse_threads(std::string_view text) {
    return unsigned(plugin::parse_number("threads", text, 1, Team::max_threads));
}

}  // namespace

Problem problem_of(const plugin::NodeView &node) {
    Problem p;
    p.op = node.op;
    p.exact = node.precision == TN_PRECISION_EXACT;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        p.in.push_back(node.has_input(i) ? operand_of(node.input(i)) : Operand());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) p.out.push_back(operand_of(node.output(i)));
    if (!node.params_words.empty()) tn_read(p.params.data(), p.params.size(), node.params_words.data());
    return p;
}

CpuAdapter::CpuAdapter(plugin::Instance &instance)
    : Adapter(instance, {.name = "cpu",
                         .description = cpu_brand(),
                         .bus_id = "",
                         .kind = TN_KIND_CPU,
                         .capabilities = TN_CAP_ASYNC}) {}

plugin::Adapter::Memory CpuAdapter::memory() const {
    const uint64_t page = uint64_t(std::max(1L, sysconf(_SC_PAGESIZE)));
    Memory memory{uint64_t(std::max(0L, sysconf(_SC_PHYS_PAGES))) * page,
                  uint64_t(std::max(0L, sysconf(_SC_AVPHYS_PAGES))) * page};
    std::ifstream file("/proc/meminfo");
    std::string key, unit;
    for (uint64_t kilobytes = 0; file >> key >> kilobytes && std::getline(file, unit);) {
        if (key == "MemTotal:") memory.total = kilobytes * 1024;
        if (key == "MemAvailable:") memory.free = kilobytes * 1024;
    }
    return memory;
}

std::unique_ptr<plugin::Device> CpuAdapter::open(plugin::Options &options) {
    std::optional<std::string> threads = options.text("threads"), isa = options.text("isa");
    if (!threads) threads = host().option("threads");
    if (!isa) isa = host().option("isa");
    Features features = isa_reference;
    const std::string name = isa.value_or("auto"), problem = parse_isa(name, detect_isa(), features);
    if (!problem.empty()) plugin::fail(TN_INVALID_ARGUMENT, "cpu: ", problem);
    return std::make_unique<CpuDevice>(*this, threads ? parse_threads(*threads) : usable_cores(), features, name);
}

CpuDevice::CpuDevice(CpuAdapter &adapter, unsigned threads, Features features, std::string isa_name)
    : Device(adapter), features_(features), isa_name_(std::move(isa_name)) {
    add_buffer_type(std::make_unique<plugin::HostBufferType>(*this, "cpu.host", k_alignment));
    const std::string problem = team_.resize(threads);
    if (!problem.empty()) plugin::fail(TN_OUT_OF_MEMORY, "cpu: ", problem);
}

plugin::Support CpuDevice::support(const plugin::GraphView &graph, const plugin::NodeView &node) const {
    const Op *op = find_op(node.op);
    if (op == nullptr) return plugin::Support::no("the CPU plugin has no kernel for this op");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
        const std::string why = node.has_input(i) ? unreachable(graph, node.inputs[i], "input", i) : std::string();
        if (!why.empty()) return plugin::Support::no(why);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
        const std::string why = unreachable(graph, node.outputs[i], "output", i);
        if (!why.empty()) return plugin::Support::no(why);
    }
    const std::string why = op->refuse(problem_of(node));
    return why.empty() ? plugin::Support::yes() : plugin::Support::no(why);
}

std::unique_ptr<plugin::Plan> CpuDevice::prepare(std::shared_ptr<const plugin::GraphView> graph) {
    return std::make_unique<CpuPlan>(*this, std::move(graph));
}

void CpuDevice::set_option(std::string_view key, std::string_view value) {
    if (key == "isa") plugin::fail(TN_UNSUPPORTED, "cpu: isa is fixed once the device is open");
    if (key != "threads") plugin::fail(TN_NOT_FOUND, "cpu: unknown option '", key, "'; known are threads, isa");
    const std::string problem = team_.resize(parse_threads(value));
    if (!problem.empty()) plugin::fail(TN_OUT_OF_MEMORY, "cpu: ", problem);
}

std::optional<std::string> CpuDevice::option(std::string_view key) const {
    if (key == "threads") return std::to_string(team_.threads());
    if (key == "isa") return isa_name_;
    return std::nullopt;
}

}  // namespace tenon::cpu
