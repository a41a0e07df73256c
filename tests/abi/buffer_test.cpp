// Buffers: canonical bytes, ranges, strides, two-dimensional moves, copies, running out of memory.
#include <numeric>

#include "host.h"

namespace abi_test {
namespace {

struct Fixture {
    Host host;
    Plugin plugin{mock_library(), host};
    OpenDevice device{plugin, host.adapters.at("mock:0")};
    const tn_buffer_api &api = *plugin.root->buffer;
    tn_buffer buffer = device.alloc(256);
    std::vector<float> numbers = std::vector<float>(16);
    Fixture() { std::iota(numbers.begin(), numbers.end(), 1.0f); }
    ~Fixture() { api.destroy(buffer); }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "the host sees no address of foreign memory") {
    auto info = make<tn_buffer_info>(TN_SIZE_BUFFER_INFO);
    CHECK(api.info(buffer, &info) == TN_OK);
    CHECK(info.base == nullptr);
    CHECK(info.bytes == 256);
    info.struct_size = TN_V1_BUFFER_INFO - 1;
    CHECK(api.info(buffer, &info) == TN_INVALID_ARGUMENT);
}

TEST_CASE_FIXTURE(Fixture, "set, get, fill and clear count in canonical bytes and stay in range (D25, D26)") {
    tn_value t = tensor({4, 4}, TN_TYPE_ID_F32, 64);
    std::vector<float> back(16);
    CHECK(api.set(buffer, &t, 0, numbers.data(), 64) == TN_OK);
    CHECK(api.get(buffer, &t, 16, back.data(), 16) == TN_OK);
    CHECK(back[0] == 5);
    CHECK(api.fill(buffer, &t, 4, 4, 0) == TN_OK);
    CHECK(api.get(buffer, &t, 0, back.data(), 64) == TN_OK);
    CHECK(back[0] == 1);
    CHECK(back[1] == 0);
    CHECK(api.set(buffer, &t, 4, numbers.data(), 64) == TN_INVALID_ARGUMENT);
    CHECK(api.set(buffer, &t, UINT64_MAX, numbers.data(), 4) == TN_INVALID_ARGUMENT);
    t.offset = 200;
    CHECK(api.get(buffer, &t, 0, back.data(), 4) == TN_INVALID_ARGUMENT);
    t.offset = 64;
    CHECK(api.set(buffer, &t, 0, nullptr, 4) == TN_INVALID_ARGUMENT);
    CHECK(api.set(buffer, &t, 0, nullptr, 0) == TN_OK);
    CHECK(api.clear(buffer, 0) == TN_OK);
    CHECK(api.get(buffer, &t, 0, back.data(), 64) == TN_OK);
    CHECK(back == std::vector<float>(16, 0));
    tn_value empty = tensor({0, 4});
    CHECK(api.set(buffer, &empty, 0, nullptr, 0) == TN_OK);
}

TEST_CASE_FIXTURE(Fixture, "strided tensors: set and get see their elements in row-major order") {
    tn_value t = tensor({4, 4});
    CHECK(api.set(buffer, &t, 0, numbers.data(), 64) == TN_OK);
    tn_value transposed = t;
    std::swap(transposed.stride_bytes[0], transposed.stride_bytes[1]);
    std::vector<float> back(16);
    CHECK(api.get(buffer, &transposed, 0, back.data(), 64) == TN_OK);
    CHECK(back[1] == 5);
    CHECK(back[4] == 2);
    CHECK(api.get(buffer, &transposed, 20, back.data(), 12) == TN_OK);  // from (1, 1) on
    CHECK(back[0] == 6);
    CHECK(back[2] == 14);
    tn_value column = tensor({4});
    column.offset = 8, column.stride_bytes[0] = 16;
    const float nines[4] = {9, 9, 9, 9};
    CHECK(api.set(buffer, &column, 0, nines, 16) == TN_OK);
    CHECK(api.get(buffer, &t, 0, back.data(), 64) == TN_OK);
    CHECK(back[2] == 9);
    CHECK(back[14] == 9);
    CHECK(back[3] == 4);
}

TEST_CASE_FIXTURE(Fixture, "blocks are never cut") {
    tn_value q = tensor({2, 32}, TN_TYPE_ID_Q8_0);
    std::vector<char> bytes(68, 3);
    CHECK(api.set(buffer, &q, 0, bytes.data(), 68) == TN_OK);
    CHECK(api.get(buffer, &q, 34, bytes.data(), 34) == TN_OK);
    CHECK(api.get(buffer, &q, 1, bytes.data(), 34) == TN_INVALID_ARGUMENT);
    CHECK(api.set(buffer, &q, 0, bytes.data(), 33) == TN_INVALID_ARGUMENT);
    uint64_t size = 0;
    CHECK(device.p.buffer_type->tensor_bytes(device.type, &q, &size) == TN_OK);
    CHECK(size == 68);
    q.type = 3000;
    CHECK(device.p.buffer_type->tensor_bytes(device.type, &q, &size) == TN_UNSUPPORTED);
}

TEST_CASE_FIXTURE(Fixture, "two-dimensional moves check the whole range first") {
    tn_value t = tensor({4, 4});
    CHECK(api.clear(buffer, 0) == TN_OK);
    CHECK(api.set_2d(buffer, &t, 4, 16, numbers.data(), 8, 8, 3) == TN_OK);  // 3 rows of 2
    std::vector<float> back(16);
    CHECK(api.get(buffer, &t, 0, back.data(), 64) == TN_OK);
    CHECK(back[1] == 1);
    CHECK(back[5] == 3);
    CHECK(back[10] == 6);
    CHECK(back[3] == 0);
    CHECK(api.set_2d(buffer, &t, 4, 16, numbers.data(), 8, 16, 4) == TN_INVALID_ARGUMENT);
    CHECK(api.set_2d(buffer, &t, 0, UINT64_MAX / 2, numbers.data(), 8, 8, 3) == TN_INVALID_ARGUMENT);
    std::vector<float> packed(6);
    CHECK(api.get_2d(buffer, &t, 4, 16, packed.data(), 8, 8, 3) == TN_OK);
    CHECK(packed == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE_FIXTURE(Fixture, "copies: within a device directly, across devices where both agree") {
    OpenDevice other(plugin, host.adapters.at("mock:1")), peer(plugin, host.adapters.at("mock:1"), {{"peer", "1"}});
    tn_value t = tensor({4, 4});
    CHECK(api.set(buffer, &t, 0, numbers.data(), 64) == TN_OK);
    std::vector<float> back(16);
    for (const OpenDevice *to : {&device, &other, &peer}) {
        tn_buffer second = to->alloc(128);
        tn_value at = tensor({4, 4}, TN_TYPE_ID_F32, 64);
        CHECK(api.copy(second, &at, buffer, &t) == (to == &other ? TN_UNSUPPORTED : TN_OK));
        if (to != &other) {
            CHECK(api.get(second, &at, 0, back.data(), 64) == TN_OK);
            CHECK(back == numbers);
        }
        tn_value shorter = tensor({2, 4});
        CHECK(api.copy(second, &shorter, buffer, &t) == TN_INVALID_ARGUMENT);
        api.destroy(second);
    }
}

TEST_CASE_FIXTURE(Fixture, "out of memory is a status; what was is intact") {
    OpenDevice small(plugin, host.adapters.at("mock:1"), {{"memory_mb", "1"}});
    tn_buffer first = small.alloc(1 << 19), second = nullptr;
    const tn_buffer_type_api &types = *plugin.root->buffer_type;
    CHECK(types.alloc(small.type, (1 << 19) + 1, TN_USAGE_ANY, &second) == TN_OUT_OF_MEMORY);
    CHECK(types.alloc(small.type, UINT64_MAX, TN_USAGE_ANY, &second) == TN_OUT_OF_MEMORY);
    CHECK(types.alloc(small.type, 16, 3, &second) == TN_INVALID_ARGUMENT);
    CHECK(second == nullptr);
    small.set("fail_alloc", "2");
    CHECK(types.alloc(small.type, 16, TN_USAGE_ANY, &second) == TN_OK);
    api.destroy(second);
    second = nullptr;
    CHECK(types.alloc(small.type, 16, TN_USAGE_ANY, &second) == TN_OUT_OF_MEMORY);
    CHECK(second == nullptr);
    CHECK(types.alloc(small.type, 1 << 19, TN_USAGE_ANY, &second) == TN_OK);
    api.destroy(second);
    api.destroy(first);
    char memory[64] = {};
    CHECK(types.import_host(small.type, memory, 64, 0, &second) == TN_UNSUPPORTED);
}

}  // namespace abi_test
