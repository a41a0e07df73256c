// The mock's device and what hangs on it. Options, at open ("mock:17:delay_us=200:seed=7"):
//   ops         names joined by '+', or "all": every primitive (default)
//   composites  1: "all" covers the composites too that the mock has kernels for (default 0)
//   fuse        0: every node is a group, in node order (default)
//               1: add after mul or linear, and rms_norm with the linears that read it, run as one group
//               random: by `seed`, another order of the nodes, cut into groups anywhere, with values that lie nowhere,
//               in-place offers and spare scratch, which the kernels fill with rubbish. Results are bit for bit those
//               of 0; the same graph and seed give the same answers
//   offload     1: linear is worth moving here (default 0)
//   peer        1: copies directly from other mock devices (default 0: the host stages)
//   wrong       an op: each of its nodes adds 1 + |x| / 8 to the middle element ((count - 1) / 2) of each output of
//               numbers; default none. wrong_from: only from the N-th such node of a plan on, counted from 0 (default 0)
//   hazards     1: a node, get or copy that reads bytes which aren't those of its value fails with TN_INTERNAL,
//               "hazard: node 'y' (add) reads 'x' at byte 64 of mock.mock:0, where 'z' lies" ("which is not yet
//               written", "which is of an earlier run", "which is of a later run"). Default 0.
//               Values are known by the names of their bases, so bases of one graph need different ones, and tensors
//               those of their values; a run is known by its cancel token, 0 stands for any run. What the host sets
//               belongs to any run; a direct copy (peer=1) is as old as its source. At its end a group is asked once
//               more for all it read and wrote, since its inputs and scratch must live until then and its outputs from
//               its start. States may be read before anybody wrote them
//   meet        N: a run waits until N runs of such devices of the plugin are going on, and fails with TN_INTERNAL, "nobody
//               came", where meet_ms (default 20000) pass without that: what may overlap must overlap. 0: never (default).
//               Only the device's runs from meet_first (default 0) on, at most meet_runs of them (default: all)
//   memory_mb, memory_bytes   of the device (default 4096 MiB); the smaller unit counts where both are given
//   max_buffer_bytes          of one buffer; 0: no limit (default)
//   alignment                 of buffers, values and scratch: a power of two from 8 to 1 MiB (default 256)
//   seed        of all that is random here (default 1)
// and at open or later:
//   delay_us    the most that each piece of work is held up, at random (default 0): each group of a run, set, get and
//               copy, at once or queued, and the recording of an event
//   fail_X      the N-th such call from now fails, once (0: none). TN_OUT_OF_MEMORY: fail_alloc, fail_prepare,
//               fail_bind, fail_init (init_tensor), fail_event (record). TN_INTERNAL: fail_run, fail_place, fail_set
//               (set and fill), fail_get, fail_copy. Of queued work the work fails, not the queuing; a record fails at
//               once. The rows of a 2-D set or get are a call each
//   lost        the device is lost in the N-th run from now (0: never)
// The plugin's option "devices" (RegistryOptions::plugin_options "mock.devices") says how many there are: 0 to 4096,
// default 2. Making streams, events and buffer types can't be made to fail.
#ifndef TENON_TESTS_MOCK_DEVICE_H
#define TENON_TESTS_MOCK_DEVICE_H

#include <condition_variable>
#include <set>

#include "faults.h"
#include "hazards.h"
#include "kernels.h"

namespace mock {

using namespace tenon::plugin;

/// Where runs of different devices wait for each other.
class Meeting {
public:
    /// Until `count` are here; false after `ms` milliseconds without them.
    bool join(uint64_t count, uint64_t ms);

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t here_ = 0, round_ = 0;
};

class MockInstance : public Instance {
public:
    void load(Registrar &registrar) override;
    Names names;
    Meeting meeting;
};

class MockAdapter : public Adapter {
public:
    MockAdapter(Instance &instance, int index);
    Memory memory() const override;
    std::unique_ptr<Device> open(Options &options) override;

    std::atomic<uint64_t> total{uint64_t{4096} << 20}, used{0};  // bytes
};

enum class Fuse : uint8_t { kNothing, kPatterns, kRandom };

class MockDevice : public Device {
public:
    MockDevice(MockAdapter &adapter, Options &options);
    Support support(const GraphView &graph, const NodeView &node) const override;
    bool supports_buffer_type(const BufferTypeView &type) const override;
    std::unique_ptr<Plan> prepare(std::shared_ptr<const GraphView> graph) override;
    void set_option(std::string_view key, std::string_view value) override;
    std::optional<std::string> option(std::string_view key) const override;
    std::unique_ptr<Stream> make_stream() override;
    std::unique_ptr<Event> make_event() override;

    MockAdapter &mock_adapter() const { return static_cast<MockAdapter &>(adapter()); }
    Names &names() const { return static_cast<MockInstance &>(instance()).names; }
    uint64_t alignment() const { return default_buffer_type().view().alignment; }
    uint64_t seed() const { return seed_; }
    Fuse fuse() const { return fuse_; }
    bool peer() const { return peer_; }
    bool hazards() const { return hazards_; }
    /// The op that is computed wrongly, TN_NONE for none, and from which of a plan's nodes on.
    uint32_t wrong_op() const { return wrong_op_; }
    uint64_t wrong_from() const { return wrong_from_; }
    /// At the start of each run: waits for those that it is to meet.
    void meet();
    Faults faults;

private:
    void choose_ops(std::string_view names, bool composites);
    void read_memory(Options &options);
    void read_faults(Options &options);
    void read_meeting(Options &options);

    std::set<uint32_t> ops_;
    Fuse fuse_ = Fuse::kNothing;
    bool offload_, peer_, hazards_;
    uint32_t wrong_op_ = TN_NONE;
    uint64_t seed_, wrong_from_ = 0;
    uint64_t meet_ = 0, meet_first_ = 0, meet_runs_ = 0, meet_ms_ = 0;
    std::atomic<uint64_t> runs_{0};
};

}  // namespace mock
#endif
