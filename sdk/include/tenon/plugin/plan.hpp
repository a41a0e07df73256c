// Plans: the author fills the answers and runs groups; placing, binding and every check around them are ready made.
#ifndef TENON_PLUGIN_PLAN_HPP
#define TENON_PLUGIN_PLAN_HPP

#include "tenon/plugin/objects_impl.hpp"

namespace tenon::plugin {

/// Where a value or scratch lies: binding and offset of its element 0; binding TN_NONE: nowhere.
struct Place {
    uint32_t binding = TN_NONE;
    uint64_t offset = 0;
};

/// Real memory of a binding.
struct BoundBuffer {
    Buffer *buffer = nullptr;   // 0: foreign memory
    std::byte *base = nullptr;  // Buffer::device_address, or the foreign CPU address
    uint64_t bytes = 0;
};

/// One numbered set, fixed from bind on: what a run reads instead of looking anything up (D38, D39).
struct BoundSet {
    std::vector<BoundBuffer> bindings;
    std::vector<std::byte *> values;   // address of each value's element 0; 0 where it has no storage
    std::vector<std::byte *> scratch;  // a group's
    std::vector<uint64_t> cookies;     // a value's
    std::shared_ptr<void> user;        // what Plan::bound made
};

/// What a run sees. Cheap to copy; valid during the run.
class RunView {
public:
    RunView(const Plan &plan, const BoundSet &set, uint64_t token, const Device &device) noexcept
        : plan_(&plan), set_(&set), token_(token), device_(&device) {}

    /// Element 0 of a value; 0 for a value without storage. An address of the device's kind (Buffer::device_address).
    template <class T = void>
    T *at(uint32_t value) const noexcept {
        return static_cast<T *>(static_cast<void *>(set_->values[value]));
    }
    template <class T = void>
    T *scratch(uint32_t group) const noexcept {
        return static_cast<T *>(static_cast<void *>(set_->scratch[group]));
    }
    uint64_t cookie(uint32_t value) const noexcept { return set_->cookies[value]; }
    /// What Plan::bound made for this set.
    template <class T>
    T *user() const noexcept {
        return static_cast<T *>(set_->user.get());
    }
    const BoundSet &set() const noexcept { return *set_; }
    const Plan &plan() const noexcept { return *plan_; }
    /// The run's token, 0 for none: equal within what the host starts as one.
    uint64_t cancel_token() const noexcept { return token_; }
    /// Whether to stop: the token was raised or the device is lost. Wait-free, from any thread: ask often.
    bool cancelled() const noexcept { return device_->lost() || device_->host().cancelled(token_); }
    /// Throws what the run then answers.
    void check_cancelled() const {
        device_->check_alive();
        if (device_->host().cancelled(token_)) fail(TN_CANCELLED, "the run was cancelled");
    }

private:
    const Plan *plan_;
    const BoundSet *set_;
    uint64_t token_;
    const Device *device_;
};

/// A segment made ready to run. Derive; fill the answers in the constructor (or in Device::prepare), and override
/// run_group or execute. Left empty, groups and node_groups mean: every node is its own group, in node order, without
/// scratch.
class Plan {
public:
    struct Group {
        uint64_t scratch_bytes = 0;
    };
    struct InPlace {
        uint32_t output, input;
    };

    Plan(Device &device, std::shared_ptr<const GraphView> graph) : device_(device), graph_(std::move(graph)) {}
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;
    virtual ~Plan() = default;

    /// Runs one group on the stream's thread. May use threads of its own; all are done with it when it returns. Writes
    /// every observed and state output, and no byte outside outputs and scratch (D40). Two sets may run at once on two
    /// threads.
    virtual void run_group(uint32_t group, const RunView &run);
    /// The whole plan; by default asks for cancellation before each group (D41) and calls run_group.
    virtual void execute(const RunView &run);
    /// New params for the same graph: ops, values, shapes and flags are as before. False: not taken, nothing changed.
    /// With true graph() is the new one afterwards. [exclusive]
    virtual bool update(const GraphView &) { return false; }
    /// After place: where things lie is in place_of and scratch_place. [exclusive]
    virtual void placed() {}
    /// For each bind: what a run of this set needs besides addresses, kept as RunView::user. [object]
    virtual std::shared_ptr<void> bound(const BoundSet &) { return nullptr; }

    Device &device() const noexcept { return device_; }
    HostRef host() const noexcept { return device_.host(); }
    const GraphView &graph() const noexcept { return *graph_; }
    std::shared_ptr<const GraphView> shared_graph() const noexcept { return graph_; }
    Place place_of(uint32_t value) const noexcept { return places_[value]; }
    Place scratch_place(uint32_t group) const noexcept { return scratch_places_[group]; }
    uint32_t group_count() const noexcept { return static_cast<uint32_t>(groups.size()); }

    // The answers, fixed once prepare has returned. The ready-made code checks them against D34 to D37.
    std::vector<Group> groups;          // in running order
    std::vector<uint32_t> node_groups;  // each node's group
    std::vector<uint32_t> unstored;     // values made and used up inside one group
    std::vector<InPlace> in_place;      // offers: the output may be found at the input's place

private:
    friend struct Border;
    inline void finish();
    inline void check_answers() const;
    inline void check_unstored(const std::vector<uint32_t> &made_in) const;
    inline void check_in_place() const;
    inline void place(const tn_placement &placement);
    inline Place read_place(const tn_place &from, uint64_t bindings, std::string_view what) const;
    inline void bind(const tn_bind &bind);
    inline std::byte *address(const BoundSet &set, Place place, uint64_t bytes, uint64_t alignment,
                              std::string_view what) const;
    inline BoundBuffer read_binding(const tn_binding &from, uint64_t index) const;
    inline uint64_t room_of(const ValueView &value, const BoundBuffer &in) const;
    inline std::unique_ptr<BoundSet> &set_slot(uint32_t number);
    inline const BoundSet &bound_set(uint32_t number) const;

    static constexpr uint32_t kSmallSets = 1024;  // found by index; larger numbers by search

    Device &device_;
    std::shared_ptr<const GraphView> graph_;
    bool placed_ = false;
    uint64_t binding_count_ = 0;
    std::vector<Place> places_, scratch_places_;
    std::vector<std::unique_ptr<BoundSet>> small_sets_;
    std::vector<std::pair<uint32_t, std::unique_ptr<BoundSet>>> large_sets_;
};

inline void Plan::run_group(uint32_t group, const RunView &) {
    fail(TN_INTERNAL, "the plan can't run group ", group);
}

inline void Plan::execute(const RunView &run) {
    for (uint32_t group = 0; group < group_count(); ++group) {
        run.check_cancelled();
        run_group(group, run);
    }
}

// ---- The answers ----

void Plan::finish() {
    const size_t nodes = graph_->nodes().size();
    if (groups.empty() && node_groups.empty()) {
        groups.resize(nodes);
        for (size_t i = 0; i < nodes; ++i) node_groups.push_back(static_cast<uint32_t>(i));
    }
    check_answers();
}

/// A breach of D34 to D37 is the plugin's bug; found here it names itself, found by the host's memory planner it
/// wouldn't.
void Plan::check_answers() const {
    const auto nodes = graph_->nodes();
    if (node_groups.size() != nodes.size()) fail(TN_INTERNAL, "plan: not every node has a group");
    // of a base, the latest group so far that wrote and that read it
    std::vector<uint32_t> made_in(graph_->values().size(), TN_NONE), read_in(graph_->values().size(), 0);
    for (const NodeView &node : nodes) {
        const uint32_t group = node_groups[node.index];
        if (group >= groups.size()) fail(TN_INTERNAL, "plan: ", graph_->describe(node), " is in no group");
        for (size_t i = 0; i < node.inputs.size(); ++i) {
            if (!node.has_input(i)) continue;
            const uint32_t base = graph_->base(node.inputs[i]), made = made_in[base];
            if (made != TN_NONE && made > group)
                fail(TN_INTERNAL, "plan: ", graph_->describe(node), " runs before its input");
            read_in[base] = std::max(read_in[base], group);
        }
        for (uint32_t v : node.outputs) {
            const uint32_t base = graph_->base(v);
            if (read_in[base] > group)
                fail(TN_INTERNAL, "plan: ", graph_->describe(node), " overwrites what a later group reads");
            uint32_t &made = made_in[base];
            made = made == TN_NONE ? group : std::max(made, group);
        }
    }
    check_unstored(made_in);
    check_in_place();
}

void Plan::check_unstored(const std::vector<uint32_t> &made_in) const {
    const auto values = graph_->values();
    std::vector<bool> listed(values.size(), false);
    for (uint32_t value : unstored) {
        if (value >= values.size() || made_in[value] == TN_NONE)
            fail(TN_INTERNAL, "plan: unstored value ", value, " isn't made here");
        if (values[value].flags != 0 || values[value].view_of != TN_NONE) {
            fail(TN_INTERNAL, "plan: unstored value ", value, " is flagged or a view");
        }
        listed[value] = true;
    }
    for (const ValueView &v : values) {
        if (v.view_of != TN_NONE && listed[v.view_of])
            fail(TN_INTERNAL, "plan: unstored value ", v.view_of, " is viewed by ", v.index);
    }
    for (const NodeView &node : graph_->nodes()) {
        for (uint32_t v : node.inputs) {
            if (v != TN_NONE && listed[v] && node_groups[node.index] != made_in[v])
                fail(TN_INTERNAL, "plan: unstored value ", v, " is read by another group");
        }
    }
}

void Plan::check_in_place() const {
    if (in_place.empty()) return;
    // (value, group) of all outputs and inputs, sorted
    std::vector<std::pair<uint32_t, uint32_t>> written, read;
    for (const NodeView &node : graph_->nodes()) {
        for (uint32_t v : node.outputs) written.emplace_back(v, node_groups[node.index]);
        for (uint32_t v : node.inputs) read.emplace_back(v, node_groups[node.index]);
    }
    std::sort(written.begin(), written.end());
    std::sort(read.begin(), read.end());
    const auto values = graph_->values();
    std::vector<bool> seen(values.size(), false);
    for (const InPlace &pair : in_place) {
        if (pair.output >= values.size() || pair.input >= values.size())
            fail(TN_INTERNAL, "plan: in-place offer out of range");
        if (seen[pair.output]) fail(TN_INTERNAL, "plan: two offers for value ", pair.output);
        seen[pair.output] = true;
        bool found = false;
        for (auto at = std::lower_bound(written.begin(), written.end(), std::pair(pair.output, 0u));
             at != written.end() && at->first == pair.output && !found; ++at) {
            found = std::binary_search(read.begin(), read.end(), std::pair(pair.input, at->second));
        }
        if (!found) fail(TN_INTERNAL, "plan: in-place offer ", pair.output, " at ", pair.input, " isn't of one group");
        const ValueView &output = values[pair.output], &input = values[pair.input];
        if (output.info == nullptr || input.info == nullptr || input.is_broadcast() ||
            output.extent() > input.extent()) {
            fail(TN_INTERNAL, "plan: value ", pair.output, " doesn't fit in the place of ", pair.input);
        }
    }
}

}  // namespace tenon::plugin

#include "tenon/plugin/plan_bind.hpp"
#endif
