// Reading a frozen graph: look-ups, structural hash, the table of contracts.
#include "tenon/graph.h"

// The state as a plain member: with it no allocation can fail.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "base/no_throw.h"
#include "graph/hash.h"
#include "graph/name_index.h"
#include "graph/op_contract.h"

namespace tenon {

#define TENON_OP_CONTRACTS(file) std::span<const OpContract> op_contracts_##file();
#include "op_contracts.inc"
#undef TENON_OP_CONTRACTS

const OpContract *find_contract(uint32_t id) {
    static const auto table = [] {
        std::array<const OpContract *, TN_OP_STANDARD_END> rows{};
        auto take = [&](std::span<const OpContract> contracts) {
            for (const OpContract &contract : contracts) rows[contract.id] = &contract;
        };
#define TENON_OP_CONTRACTS(file) take(op_contracts_##file());
#include "op_contracts.inc"
#undef TENON_OP_CONTRACTS
        return rows;
    }();
    return id < table.size() ? table[id] : nullptr;
}

const OpInfo *find_op(const OpSet *ops, uint32_t id) {
    const OpInfo *standard = find_standard_op(id);
    return standard || !ops ? standard : ops->find(id);
}

const OpInfo *find_op(const OpSet *ops, std::string_view name) {
    const OpInfo *standard = find_standard_op(name);
    return standard || !ops ? standard : ops->find(name);
}

Graph::Body::~Body() {
    delete index.load(std::memory_order_relaxed);
}

namespace {

/// Null where there is no memory for one.
std::unique_ptr<const NameIndex> index_names(std::span<const Value> values) {
    std::unique_ptr<NameIndex> index;
    const Status status = no_throw([&] {
        index = std::make_unique<NameIndex>(values, size_t(std::ranges::count_if(values, has_own_name)));
        return Status();
    });
    if (!status.ok()) return nullptr;
    for (ValueId id = 0; id < values.size(); ++id)
        if (has_own_name(values[id])) index->insert(id);
    return index;
}

}  // namespace

ValueId Graph::find(std::string_view value_name) const noexcept {
    const NameIndex *index = body_->index.load(std::memory_order_acquire);
    if (!index) {
        std::unique_ptr<const NameIndex> made = index_names(values());
        if (!made) {
            const auto found = std::ranges::find_if(
                values(), [&](const Value &value) { return has_own_name(value) && value.name == value_name; });
            return found == values().end() ? k_no_value : ValueId(found - values().begin());
        }
        // Of several threads that make one at once, the first one's stays.
        if (body_->index.compare_exchange_strong(index, made.get(), std::memory_order_acq_rel)) index = made.release();
    }
    return index->find(value_name);
}

const OpInfo &Graph::op(const Node &node) const {
    return *find_op(body_->ops, node.op);
}

namespace {

/// Collects small pieces, since a call into the hash takes longer than it takes to hash one.
class Hasher {
public:
    Hasher() { XXH3_128bits_reset(&state_); }
    void bytes(const void *data, size_t size) {
        number(size);
        raw(data, size);
    }
    void number(uint64_t value) { raw(&value, sizeof value); }
    GraphHash digest() {
        flush();
        const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
        return {hash.high64, hash.low64};
    }

private:
    void raw(const void *data, size_t size) {
        if (size == 0) return;
        if (size > sizeof buffer_ - filled_) {
            flush();
            if (size > sizeof buffer_) {
                XXH3_128bits_update(&state_, data, size);
                return;
            }
        }
        std::memcpy(buffer_ + filled_, data, size);
        filled_ += size;
    }
    void flush() {
        XXH3_128bits_update(&state_, buffer_, filled_);
        filled_ = 0;
    }

    XXH3_state_t state_;
    size_t filled_ = 0;
    std::byte buffer_[4096];
};

}  // namespace

GraphHash hash_structure(std::span<const Value> values, std::span<const Node> nodes, std::span<const ValueId> outputs,
                         const OpSet *ops) {
    Hasher hash;
    hash.number(values.size());
    for (const Value &value : values) {
        hash.number(uint64_t(value.type));
        hash.bytes(value.shape.sizes().data(), value.shape.sizes().size_bytes());
        hash.bytes(value.stride_bytes.data(), value.shape.rank() * sizeof(int64_t));
        hash.number(value.flags);
        hash.number(value.view_of);
        hash.number(value.offset);
        if (value.constant) hash.bytes(value.constant->data(), value.constant->size());
    }
    hash.number(nodes.size());
    for (const Node &node : nodes) {
        // By name: a vendor op's id is this process's alone.
        const std::string_view op = find_op(ops, node.op)->name;
        hash.bytes(op.data(), op.size());
        hash.number(uint64_t(node.precision));
        hash.bytes(node.inputs.data(), node.inputs.size() * sizeof(ValueId));
        hash.bytes(node.outputs.data(), node.outputs.size() * sizeof(ValueId));
        hash.bytes(node.params.data(), node.params.bytes().size());
    }
    hash.bytes(outputs.data(), outputs.size_bytes());
    return hash.digest();
}

GraphHash hash_names(std::span<const Value> values, std::span<const ValueId> leaves, std::span<const Node> nodes) {
    Hasher hash;
    auto add = [&](std::string_view name) { hash.bytes(name.data(), name.size()); };
    for (ValueId id : leaves) add(values[id].name);
    hash.number(nodes.size());
    for (const Node &node : nodes) add(node.name);
    return hash.digest();
}

}  // namespace tenon
