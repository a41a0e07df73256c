// The ops that a graph may hold: the standard ones of ops.def, and those that plugins have registered.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/abi.h"
#include "tenon/status.h"

namespace tenon {

class LiveCount;  // whether the plugin behind an op is still loaded (core/registry/live_count.h)

enum class OpKind { view, primitive, composite, reserved, vendor };
enum class OpAlias { none, may0, must0 };

/// What ops.def or a plugin's tn_op_info says about one op.
struct OpInfo {
    uint32_t id = 0;
    std::string_view name;
    OpKind kind = OpKind::reserved;
    uint32_t min_inputs = 0, max_inputs = 0, outputs = 0;
    uint64_t params_bytes = 0;  // head included; 0: none
    OpAlias alias = OpAlias::none;
    /// For vendor ops: infer, and decompose or null, to be called with this struct's own ctx. Both may be called at any
    /// time: they answer TN_INVALID_STATE once no plugin that brought the op is loaded any more.
    const tn_op_info *vendor = nullptr;
};

/// Standard op by id or name; null where there is none. Any thread.
const OpInfo *find_standard_op(uint32_t id) noexcept;
const OpInfo *find_standard_op(std::string_view name) noexcept;

/// Standard ops plus vendor ops. Vendor ops stay readable for the set's life, also after they were withdrawn (then they
/// aren't found by name any more). Any thread.
class OpSet {
public:
    const OpInfo *find(uint32_t id) const;
    const OpInfo *find(std::string_view name) const;

    OpSet() = default;
    OpSet(const OpSet &) = delete;
    OpSet &operator=(const OpSet &) = delete;

    /// Adds a vendor op, or answers the id it has if version and counts agree; busy if they don't. The strings are
    /// copied. `owner` is the plugin's, and what `withdraw_vendor` names it by; null: whoever calls keeps info.ctx and
    /// the functions valid for the set's life.
    Result<uint32_t> add_vendor(const tn_op_info &info, std::shared_ptr<LiveCount> owner = nullptr);
    /// not_found: `owner` hasn't added it. The op goes when all that added it have withdrawn it.
    Status withdraw_vendor(uint32_t id, const LiveCount *owner = nullptr);

private:
    struct Holder {
        std::shared_ptr<LiveCount> owner;
        tn_op_info info;
    };
    struct Row {
        const OpSet *set;
        std::string name;
        tn_op_info info;  // as others see it: functions of this set that ask a holder
        OpInfo op;
        std::vector<Holder> holders;
    };
    static tn_status infer(void *ctx, const tn_graph *graph, const tn_node *node, uint64_t stride, tn_value *out);
    static tn_status decompose(void *ctx, const tn_graph *graph, const tn_node *node, const tn_graph_sink *sink);
    template <class Call>
    tn_status ask_holder(const Row &row, Call call) const;

    mutable std::mutex mutex_;  // never held while a plugin's function runs
    std::deque<Row> rows_;      // addresses stay
};

}  // namespace tenon
