// A graph's weights and states move into memory of a session's devices.
#include <fmt/format.h>

#include <algorithm>

#include "base/no_throw.h"
#include "sched/homes.h"
#include "sched/session_impl.h"

namespace tenon {

Result<TensorMap> Session::copy_tensors(const Graph &graph, const TensorMap &tensors) {
    return no_throw([&]() -> Result<TensorMap> {
        TENON_TRY(types_of(graph, tensors).status());  // each is there, with the graph's type and shape
        TENON_TRY(impl_->pipeline->wait_all());        // states as the last run leaves them
        TENON_ASSIGN(auto homes, choose_homes(graph, impl_->devices, impl_->pins));
        // Those of one kind of memory share buffers.
        std::ranges::stable_sort(homes, {}, &TensorHome::device);
        TensorMap copied;
        for (size_t first = 0; first < homes.size();) {
            std::vector<TensorSpec> specs;
            size_t end = first;
            for (; end < homes.size() && homes[end].device == homes[first].device &&
                   homes[end].buffer_type == homes[first].buffer_type;
                 ++end) {
                const Value &value = graph.values()[homes[end].value];
                specs.push_back({value.name, value.type, value.shape});
            }
            TENON_ASSIGN(auto made, allocate_tensors(homes[first].buffer_type, specs, Usage::any));
            for (size_t i = 0; i < made.size(); ++i) {
                TENON_TRY(copy_contents(*tensors.find(specs[i].name), made[i]).in([&] {
                    return fmt::format("copying '{}'", specs[i].name);
                }));
                copied.set(specs[i].name, std::move(made[i]));
            }
            first = end;
        }
        return copied;
    });
}

}  // namespace tenon
