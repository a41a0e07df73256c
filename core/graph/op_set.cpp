#include "tenon/op_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/no_throw.h"
#include "base/text.h"
#include "registry/live_count.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

constexpr OpKind VIEW = OpKind::view, PRIMITIVE = OpKind::primitive, COMPOSITE = OpKind::composite,
                 RESERVED = OpKind::reserved;
constexpr OpAlias NONE = OpAlias::none, MAY0 = OpAlias::may0, MUST0 = OpAlias::must0;

constexpr OpInfo k_standard[] = {
#define TN_OP(id, NAME, name, KIND, min_inputs, max_inputs, outputs, PARAMS, ALIAS) \
    {id, #name, KIND, min_inputs, max_inputs, outputs, TN_SIZE_PARAMS_##PARAMS, ALIAS, nullptr},
#include "tenon/ops.def"
#undef TN_OP
};

constexpr bool ids_are_indices() {
    for (uint32_t i = 0; i < std::size(k_standard); ++i)
        if (k_standard[i].id != i) return false;
    return true;
}
static_assert(ids_are_indices(), "ops.def is append-only without gaps: ids are found by index");

// Indices of k_standard by rising name.
constexpr auto k_by_name = [] {
    std::array<uint32_t, std::size(k_standard)> order{};
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, {}, [](uint32_t i) { return k_standard[i].name; });
    return order;
}();

bool same_contract(const tn_op_info &a, const tn_op_info &b) {
    return a.version == b.version && a.min_inputs == b.min_inputs && a.max_inputs == b.max_inputs &&
           a.output_count == b.output_count && a.params_bytes == b.params_bytes;
}

Status check(const tn_op_info &info) {
    if (!info.name) return Status::invalid_argument("a vendor op without a name");
    std::string name = printable(info.name, 200);
    size_t dot = name.find('.');
    if (name != info.name || dot == 0 || dot == std::string::npos || dot + 1 == name.size()) {
        return Status::invalid_argument(fmt::format("vendor op '{}': the name isn't 'vendor.op'", name));
    }
    if (name.starts_with("tenon."))
        return Status::invalid_argument(fmt::format("vendor op '{}': 'tenon.' isn't a vendor's", name));
    if (!info.infer) return Status::invalid_argument(fmt::format("vendor op '{}' has no infer function", name));
    if (info.min_inputs > info.max_inputs || info.output_count == 0) {
        return Status::invalid_argument(fmt::format("vendor op '{}': {} to {} inputs and {} outputs make no op", name,
                                                    info.min_inputs, info.max_inputs, info.output_count));
    }
    if (info.params_bytes && info.params_bytes < sizeof(uint64_t) + sizeof(void *)) {
        return Status::invalid_argument(fmt::format("vendor op '{}': its params have no room for their head", name));
    }
    return {};
}

}  // namespace

const OpInfo *find_standard_op(uint32_t id) noexcept {
    return id < std::size(k_standard) ? &k_standard[id] : nullptr;
}

const OpInfo *find_standard_op(std::string_view name) noexcept {
    auto row = std::ranges::lower_bound(k_by_name, name, {}, [](uint32_t i) { return k_standard[i].name; });
    return row != k_by_name.end() && k_standard[*row].name == name ? &k_standard[*row] : nullptr;
}

const OpInfo *OpSet::find(uint32_t id) const {
    if (id < TN_OP_VENDOR_FIRST) return find_standard_op(id);
    std::lock_guard lock(mutex_);
    return id - TN_OP_VENDOR_FIRST < rows_.size() ? &rows_[id - TN_OP_VENDOR_FIRST].op : nullptr;
}

const OpInfo *OpSet::find(std::string_view name) const {
    if (const OpInfo *standard = find_standard_op(name)) return standard;
    std::lock_guard lock(mutex_);
    auto row = std::ranges::find_if(rows_, [&](const Row &r) { return !r.holders.empty() && r.name == name; });
    return row != rows_.end() ? &row->op : nullptr;
}

Result<uint32_t> OpSet::add_vendor(const tn_op_info &info, std::shared_ptr<LiveCount> owner) {
    return no_throw([&]() -> Result<uint32_t> {
        if (info.struct_size < TN_V1_OP_INFO) return Status::invalid_argument("a vendor op's description is too short");
        tn_op_info own;
        tn_read(&own, TN_SIZE_OP_INFO, &info);
        TENON_TRY(check(own));
        const std::string name = own.name;
        own.name = nullptr;
        own.next = nullptr;
        std::lock_guard lock(mutex_);
        for (Row &row : rows_) {
            if (row.name != name) continue;
            bool same = same_contract(row.info, own);
            if (!same && row.holders.empty())
                continue;  // withdrawn: the name is free for another contract, under another id
            if (!same) {
                return Status{Code::busy,
                              fmt::format("vendor op '{}' is registered with another version or other counts", name)};
            }
            auto mine = [&](const Holder &holder) { return holder.owner == owner; };
            if (std::ranges::none_of(row.holders, mine)) row.holders.push_back({std::move(owner), own});
            return row.op.id;
        }
        Row &row = rows_.emplace_back();
        row.set = this;
        row.name = name;
        row.info = own;
        row.info.name = row.name.c_str();
        row.info.ctx = &row;
        row.info.infer = infer;
        row.info.decompose = own.decompose ? decompose : nullptr;
        row.op = {uint32_t(TN_OP_VENDOR_FIRST + rows_.size() - 1),
                  row.name,
                  OpKind::vendor,
                  own.min_inputs,
                  own.max_inputs,
                  own.output_count,
                  own.params_bytes,
                  OpAlias::none,
                  &row.info};
        row.holders.push_back({std::move(owner), own});
        return row.op.id;
    });
}

Status OpSet::withdraw_vendor(uint32_t id, const LiveCount *owner) {
    return no_throw([&]() -> Status {
        std::lock_guard lock(mutex_);
        if (id >= TN_OP_VENDOR_FIRST && id - TN_OP_VENDOR_FIRST < rows_.size()) {
            Row &row = rows_[id - TN_OP_VENDOR_FIRST];
            if (std::erase_if(row.holders, [&](const Holder &holder) { return holder.owner.get() == owner; }))
                return {};
        }
        return Status::not_found(fmt::format("op {} wasn't registered by this plugin", id));
    });
}

// Calls a function of the first plugin that brought the op and is loaded; it can't be unloaded meanwhile.
template <class Call>
tn_status OpSet::ask_holder(const Row &row, Call call) const {
    std::vector<Holder> holders;
    try {
        std::lock_guard lock(mutex_);
        holders = row.holders;
    } catch (...) {
        return TN_OUT_OF_MEMORY;
    }
    for (const Holder &holder : holders) {
        if (!holder.owner) return call(holder.info);
        if (LiveGuard guard(*holder.owner); guard) return call(holder.info);
    }
    return TN_INVALID_STATE;
}

tn_status OpSet::infer(void *ctx, const tn_graph *graph, const tn_node *node, uint64_t stride, tn_value *out) {
    const Row &row = *static_cast<const Row *>(ctx);
    return row.set->ask_holder(row, [&](const tn_op_info &op) { return op.infer(op.ctx, graph, node, stride, out); });
}

tn_status OpSet::decompose(void *ctx, const tn_graph *graph, const tn_node *node, const tn_graph_sink *sink) {
    const Row &row = *static_cast<const Row *>(ctx);
    return row.set->ask_holder(row, [&](const tn_op_info &op) -> tn_status {
        return op.decompose ? op.decompose(op.ctx, graph, node, sink) : TN_UNIMPLEMENTED;
    });
}

}  // namespace tenon
