// Reading a frozen graph: look-ups, structural hash, the table of contracts.
#include "tenon/graph.h"

// The state as a plain member: with it no allocation can fail.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "graph/hash.h"
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

ValueId Graph::find(std::string_view value_name) const {
    for (ValueId id = 0; id < values().size(); ++id)
        if (values()[id].name == value_name &&
            (values()[id].view_of == k_no_value || values()[id].producer != k_no_value))
            return id;
    return k_no_value;
}

const OpInfo &Graph::op(const Node &node) const {
    return *find_op(body_->ops, node.op);
}

namespace {

class Hasher {
public:
    Hasher() { XXH3_128bits_reset(&state_); }
    void bytes(const void *data, size_t size) {
        number(size);
        XXH3_128bits_update(&state_, data, size);
    }
    void number(uint64_t value) { XXH3_128bits_update(&state_, &value, sizeof value); }
    GraphHash digest() const {
        const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
        return {hash.high64, hash.low64};
    }

private:
    XXH3_state_t state_;
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

GraphHash hash_names(std::span<const Value> values, std::span<const Node> nodes) {
    Hasher hash;
    for (const Value &value : values)
        if (value.view_of == k_no_value && value.producer == k_no_value)
            hash.bytes(value.name.data(), value.name.size());
    for (const Node &node : nodes) hash.bytes(node.name.data(), node.name.size());
    return hash.digest();
}

}  // namespace tenon
