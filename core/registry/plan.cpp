// Segments made ready: the calls of tn_plan_api.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/no_throw.h"
#include "registry/lists.h"
#include "registry/plan_answers.h"
#include "registry/plugin.h"
#include "tenon/device.h"

namespace tenon {
namespace {

// Whether the plugin gives this list; one of the four that it may leave out answers `unimplemented`.
Result<bool> given(Status status) {
    if (status.ok()) return true;
    if (status.code() == Code::unimplemented) return false;
    return status;
}

}  // namespace

Plan::Plan(std::shared_ptr<Device> device, tn_plan handle) : device_(std::move(device)), handle_(handle) {}

Plan::~Plan() {
    if (!handle_) return;  // it was never prepared
    device_->plugin()->tables().plan.destroy(handle_);
    device_->plugin()->live().leave();
}

Result<std::unique_ptr<Plan>> Plan::prepare(std::shared_ptr<Device> device, const tn_graph &graph) {
    return no_throw([&]() -> Result<std::unique_ptr<Plan>> {
        TENON_TRY(device->usable());
        Plugin &plugin = *device->plugin();
        std::unique_ptr<Plan> plan(new Plan(device, nullptr));  // first: no handle may lack an owner
        LiveGuard guard(plugin.live());
        if (!guard) return plugin.unloaded();
        tn_plan handle = nullptr;
        TENON_TRY(
            device->note(plugin.call("plan.prepare", plugin.tables().plan.prepare, device->handle(), &graph, &handle)));
        if (!handle)
            return Status::internal(fmt::format("{}: plan.prepare answered ok without a plan", device->name()));
        plan->handle_ = handle;
        guard.keep();
        TENON_TRY(plan->read_answers(graph).in([&] { return fmt::format("plugin {}", plugin.name()); }));
        return plan;
    });
}

Status Plan::read_answers(const tn_graph &graph) {
    const Plugin &plugin = *device_->plugin();
    const tn_plan_api &t = plugin.tables().plan;
    PlanAnswers answers;

    tn_group group{};
    group.struct_size = TN_SIZE_GROUP;
    std::vector<tn_group> groups;
    TENON_ASSIGN(bool has_groups, given(read_list<tn_group>(
                                      groups, "groups",
                                      [&](uint64_t *n, tn_group *out) {
                                          return plugin.call("plan.groups", t.groups, handle_, n,
                                                             uint64_t(sizeof group), out);
                                      },
                                      group)));
    TENON_ASSIGN(bool has_nodes,
                 given(read_list<uint32_t>(answers.node_groups, "groups of nodes", [&](uint64_t *n, uint32_t *out) {
                     return plugin.call("plan.node_groups", t.node_groups, handle_, n, out);
                 })));
    if (has_groups != has_nodes) {
        return Status::internal("D34 is broken: of groups and node_groups one is there and the other isn't");
    }
    if (has_groups) {
        for (const tn_group &g : groups) answers.group_scratch.push_back(g.scratch_bytes);
    } else {
        answers.group_scratch.assign(graph.node_count, 0);
        answers.node_groups.resize(graph.node_count);
        std::iota(answers.node_groups.begin(), answers.node_groups.end(), 0u);
    }

    TENON_ASSIGN([[maybe_unused]] bool has_unstored,
                 given(read_list<uint32_t>(answers.unstored, "unstored values", [&](uint64_t *n, uint32_t *out) {
                     return plugin.call("plan.unstored", t.unstored, handle_, n, out);
                 })));
    std::ranges::sort(answers.unstored);
    answers.unstored.erase(std::ranges::unique(answers.unstored).begin(), answers.unstored.end());

    tn_in_place pair{};
    pair.struct_size = TN_SIZE_IN_PLACE;
    std::vector<tn_in_place> pairs;
    TENON_ASSIGN([[maybe_unused]] bool has_pairs, given(read_list<tn_in_place>(
                                                      pairs, "in-place offers",
                                                      [&](uint64_t *n, tn_in_place *out) {
                                                          return plugin.call("plan.in_place", t.in_place, handle_, n,
                                                                             uint64_t(sizeof pair), out);
                                                      },
                                                      pair)));
    for (const tn_in_place &p : pairs) answers.in_place.emplace_back(p.output, p.input);

    TENON_TRY(check_plan_answers(graph, answers));
    group_scratch_ = std::move(answers.group_scratch);
    node_groups_ = std::move(answers.node_groups);
    unstored_ = std::move(answers.unstored);
    in_place_ = std::move(answers.in_place);
    return {};
}

Status Plan::place(const tn_placement &placement) {
    return no_throw([&]() -> Status {
        return device_->note(
            device_->plugin()->call("plan.place", device_->plugin()->tables().plan.place, handle_, &placement));
    });
}

Status Plan::bind(const tn_bind &bind) {
    return no_throw([&]() -> Status {
        return device_->note(
            device_->plugin()->call("plan.bind", device_->plugin()->tables().plan.bind, handle_, &bind));
    });
}

Status Plan::run(Stream &stream, uint32_t set, uint64_t cancel_token) {
    return no_throw([&]() -> Status {
        if (stream.device() != device_) {
            return Status::invalid_argument(
                fmt::format("a plan of {} can't run on a stream of {}", device_->name(), stream.device()->name()));
        }
        TENON_TRY(device_->usable());
        tn_run run{};
        run.struct_size = TN_SIZE_RUN;
        run.cancel_token = cancel_token;
        run.set = set;
        return device_->note(
            device_->plugin()->call("plan.run", device_->plugin()->tables().plan.run, handle_, stream.handle(), &run));
    });
}

Status Plan::update(const tn_graph &graph) {
    return no_throw([&]() -> Status {
        return device_->note(
            device_->plugin()->call("plan.update", device_->plugin()->tables().plan.update, handle_, &graph));
    });
}

}  // namespace tenon
