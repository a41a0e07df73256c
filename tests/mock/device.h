// The mock's device and what hangs on it. Options, at open ("mock:0:delay_us=200:ops=add+mul") and most of them later:
//   ops         names joined by '+', or "all": every primitive (default)
//   composites  1: "all" covers the composites too that the mock has kernels for (default 0)
//   fuse        1: add after mul or linear, and rms_norm with the linears that read it, run as one group (default 0)
//   offload     1: linear is worth moving here (default 0)
//   peer        1: copies directly from other mock devices (default 0: the host stages)
//   delay_us    the most that each piece of work is held up, at random (default 0); seed: of that randomness
//   fail_run, fail_alloc   the N-th run or allocation from now fails, once (0: none)
//   lost        the device is lost in the N-th run from now (0: never)
//   memory_mb   of the device (default 4096)
// The plugin's option "devices" (tn_host.option) says how many there are: 0 to 16, default 2.
#ifndef TENON_TESTS_MOCK_DEVICE_H
#define TENON_TESTS_MOCK_DEVICE_H

#include <set>

#include "kernels.h"

namespace mock {

using namespace tenon::plugin;

class MockAdapter : public Adapter {
public:
    MockAdapter(Instance &instance, int index);
    Memory memory() const override;
    std::unique_ptr<Device> open(Options &options) override;

    std::atomic<uint64_t> total{uint64_t{4096} << 20}, used{0};  // bytes
};

/// What the stream threads and the options share.
struct Faults {
    std::atomic<uint64_t> delay_us{0}, random{1};
    std::atomic<int64_t> fail_run{0}, fail_alloc{0}, lost{0};  // countdowns

    void pause();                                      // a random delay
    static bool hit(std::atomic<int64_t> &countdown);  // true on the call that ends it
};

class MockDevice : public Device {
public:
    MockDevice(MockAdapter &adapter, Options &options);
    Support support(const GraphView &graph, const NodeView &node) const override;
    bool supports_buffer_type(const BufferTypeView &type) const override;
    std::unique_ptr<Plan> prepare(std::shared_ptr<const GraphView> graph) override;
    void set_option(std::string_view key, std::string_view value) override;
    std::optional<std::string> option(std::string_view key) const override;

    MockAdapter &mock_adapter() const { return static_cast<MockAdapter &>(adapter()); }
    bool peer() const { return peer_; }
    Faults faults;

private:
    void choose_ops(std::string_view names, bool composites);

    std::set<uint32_t> ops_;
    bool fuse_, offload_, peer_;
};

/// Memory of the device: the host sees no address.
class MockBuffer : public Buffer {
public:
    MockBuffer(BufferType &type, uint64_t bytes);
    ~MockBuffer() override;
    void *base() const noexcept override { return nullptr; }
    void *device_address() const noexcept override { return memory_; }
    void set(const ValueView &tensor, uint64_t offset, const void *src, uint64_t bytes) override;
    void get(const ValueView &tensor, uint64_t offset, void *dst, uint64_t bytes) override;
    void fill(const ValueView &tensor, uint64_t offset, uint64_t bytes, uint8_t byte) override;
    void clear(uint8_t byte) override;
    bool can_copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor) const override;
    void copy_from(const ValueView &dst, const Buffer &src, const ValueView &src_tensor) override;

private:
    MockDevice &mock() const { return static_cast<MockDevice &>(*type().device()); }
    std::byte *memory_ = nullptr;
};

class MockBufferType : public BufferType {
public:
    explicit MockBufferType(MockDevice &device, std::string name);
    std::unique_ptr<Buffer> alloc(uint64_t bytes, uint32_t usage) override;
};

class MockPlan : public Plan {
public:
    MockPlan(MockDevice &device, std::shared_ptr<const GraphView> graph, bool fuse);
    void execute(const RunView &run) override;
    void run_group(uint32_t group, const RunView &run) override;
    /// Nodes read their params from the graph, so that a new one is all it takes.
    bool update(const GraphView &) override;

private:
    struct Fused {
        std::vector<uint32_t> nodes;  // in running order
        uint32_t unstored = TN_NONE;  // lies at the begin of scratch
        uint64_t unstored_bytes = 0;  // rounded up to the alignment of scratch
        uint32_t position = 0;        // the node in whose place the group runs
    };

    void fuse_adds(std::vector<bool> &taken);
    void fuse_norms(std::vector<bool> &taken);
    void offer_in_place(const Fused &group);
    std::vector<uint32_t> readers(uint32_t value) const;
    bool is_private(uint32_t value) const;
    bool overwritten_between(const NodeView &node, uint32_t end) const;

    MockDevice &mock_;
    std::vector<Fused> fused_;
};

}  // namespace mock
#endif
