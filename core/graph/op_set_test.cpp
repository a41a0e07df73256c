#include "tenon/op_set.h"

#include <doctest/doctest.h>

#include "registry/live_count.h"
#include "tenon/ops.h"

using namespace tenon;

static tn_status infer_ok(void *ctx, const tn_graph *, const tn_node *, uint64_t, tn_value *) {
    ++*static_cast<int *>(ctx);
    return TN_OK;
}

static tn_op_info op_info(const char *name, int &calls) {
    tn_op_info info{};
    info.struct_size = TN_SIZE_OP_INFO;
    info.name = name;
    info.version = 1;
    info.min_inputs = 1;
    info.max_inputs = 2;
    info.output_count = 1;
    info.ctx = &calls;
    info.infer = infer_ok;
    return info;
}

TEST_CASE("standard ops: by id and by name, as ops.def says") {
    const OpInfo *add = find_standard_op(TN_OP_ADD);
    REQUIRE(add);
    CHECK(add->name == "add");
    CHECK(add->kind == OpKind::primitive);
    CHECK(add->alias == OpAlias::may0);
    CHECK(find_standard_op("add") == add);
    CHECK(find_standard_op("rms_norm")->params_bytes == TN_SIZE_PARAMS_NORM);
    CHECK(find_standard_op("kv_append")->alias == OpAlias::must0);
    CHECK(find_standard_op("reshape")->kind == OpKind::view);
    CHECK(find_standard_op("route")->outputs == 2);
    CHECK(!find_standard_op("ADD"));
    CHECK(!find_standard_op(""));
    CHECK(!find_standard_op(uint32_t(TN_OP_STANDARD_END)));
    CHECK(!find_standard_op(UINT32_MAX));
    for (uint32_t id = 0; id < uint32_t(TN_OP_STANDARD_END); ++id) {
        REQUIRE(find_standard_op(id));
        CHECK(find_standard_op(find_standard_op(id)->name) == find_standard_op(id));
    }
}

TEST_CASE("vendor ops: one id for one contract, busy for another") {
    OpSet set;
    int calls = 0;
    tn_op_info info = op_info("acme.conv", calls);
    std::string name = "acme.conv";
    info.name = name.c_str();
    auto a = std::make_shared<LiveCount>(), b = std::make_shared<LiveCount>();
    auto id = set.add_vendor(info, a);
    REQUIRE(id.ok());
    name = "changed!!";  // the strings were copied
    CHECK(*id >= TN_OP_VENDOR_FIRST);
    const OpInfo *op = set.find("acme.conv");
    REQUIRE(op);
    CHECK(op == set.find(*id));
    CHECK(op->kind == OpKind::vendor);
    CHECK(op->max_inputs == 2);

    info = op_info("acme.conv", calls);
    CHECK(*set.add_vendor(info, b) == *id);
    info.version = 2;
    CHECK(set.add_vendor(info, b).status().code() == Code::busy);
    CHECK(*set.add_vendor(op_info("acme.other", calls), b) == *id + 1);
    CHECK(set.find("add") == find_standard_op("add"));
}

TEST_CASE("vendor ops: withdrawn by all means not found by name, still readable by id") {
    OpSet set;
    int calls = 0;
    auto a = std::make_shared<LiveCount>(), b = std::make_shared<LiveCount>();
    tn_op_info info = op_info("acme.conv", calls);
    uint32_t id = *set.add_vendor(info, a);
    CHECK(*set.add_vendor(info, b) == id);
    CHECK(set.withdraw_vendor(id, a.get()).ok());
    CHECK(set.withdraw_vendor(id, a.get()).code() == Code::not_found);
    CHECK(set.find("acme.conv"));
    CHECK(set.withdraw_vendor(id, b.get()).ok());
    CHECK(!set.find("acme.conv"));
    REQUIRE(set.find(id));
    CHECK(set.find(id)->name == "acme.conv");
    CHECK(*set.add_vendor(info, a) == id);  // the same contract again
    CHECK(set.withdraw_vendor(id, a.get()).ok());
    info.version = 2;
    CHECK(*set.add_vendor(info, a) != id);
    CHECK(set.find("acme.conv")->id != id);
    CHECK(set.withdraw_vendor(12345, a.get()).code() == Code::not_found);
}

TEST_CASE("vendor ops: functions are asked only of a plugin that is loaded") {
    OpSet set;
    int first = 0, second = 0;
    auto a = std::make_shared<LiveCount>(), b = std::make_shared<LiveCount>();
    uint32_t id = *set.add_vendor(op_info("acme.conv", first), a);
    CHECK(*set.add_vendor(op_info("acme.conv", second), b) == id);
    const tn_op_info *op = set.find(id)->vendor;
    auto infer = [&] { return op->infer(op->ctx, nullptr, nullptr, 0, nullptr); };
    CHECK(infer() == TN_INVALID_STATE);
    b->open();
    CHECK(infer() == TN_OK);
    CHECK(second == 1);
    a->open();
    CHECK(infer() == TN_OK);
    CHECK(first == 1);
    CHECK(a->count() == 0);
    CHECK(a->shut());
    CHECK(set.withdraw_vendor(id, b.get()).ok());
    CHECK(infer() == TN_INVALID_STATE);
    CHECK(!op->decompose);
}

TEST_CASE("vendor ops: descriptions that make no op are refused") {
    OpSet set;
    int calls = 0;
    auto refused = [&](tn_op_info info) { return set.add_vendor(info).status().code() == Code::invalid_argument; };
    for (const char *name : {"", "conv", ".conv", "acme.", "tenon.conv"}) CHECK(refused(op_info(name, calls)));
    tn_op_info info = op_info("acme.conv", calls);
    info.name = nullptr;
    CHECK(refused(info));
    info = op_info("acme.conv", calls);
    info.infer = nullptr;
    CHECK(refused(info));
    info = op_info("acme.conv", calls);
    info.min_inputs = 3;
    CHECK(refused(info));
    info = op_info("acme.conv", calls);
    info.params_bytes = 8;
    CHECK(refused(info));
    info = op_info("acme.conv", calls);
    info.struct_size = TN_V1_OP_INFO - 8;
    CHECK(refused(info));
}
