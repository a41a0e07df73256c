// The headers in C and in C++ agree, sizes are those of 1.0, and tn_read and tn_write do what their comments say.
#include <doctest/doctest.h>
#include <cstring>
#include <vector>

#include "tenon/abi.h"
#include "tenon/ops.h"

extern "C" uint64_t abi_sizes_in_c(uint64_t *out, uint64_t room);

TEST_CASE("struct sizes agree between C and C++, and are those that 1.0 froze") {
    if (sizeof(void *) != 8) return;
    // in the order of headers.c
    const std::vector<uint64_t> frozen = {32,  32, 64, 192, 56, 88, 112, 56, 48, 72, 72, 40,  32, 72, 48, 32,
                                          112, 64, 56, 24,  24, 32, 72,  40, 56, 32, 96, 152, 56, 32, 8};
    std::vector<uint64_t> in_c(frozen.size());
    CHECK(abi_sizes_in_c(in_c.data(), in_c.size()) == frozen.size());
    CHECK(in_c == frozen);
    CHECK(offsetof(tn_value, offset) == 168);
    CHECK(offsetof(tn_host, error) == 40);
    CHECK(offsetof(tn_plugin, load) == 72);
}

TEST_CASE("tn_read zeroes what the sender doesn't have, tn_write keeps to the smaller size and leaves the head") {
    tn_run from{};
    from.struct_size = 20;
    from.cancel_token = 0x1122334455667788;
    tn_run to;
    std::memset(&to, 0xff, sizeof to);
    tn_read(&to, TN_SIZE_RUN, &from);
    CHECK(to.struct_size == 20);
    CHECK(to.cancel_token == 0x55667788);
    CHECK(to.set == 0);
    tn_run out{};
    out.struct_size = 24, out.set = 7;
    from.struct_size = TN_SIZE_RUN, from.set = 9, from.next = &from;
    tn_write(&out, &from);
    CHECK(out.struct_size == 24);
    CHECK(out.next == nullptr);
    CHECK(out.cancel_token == from.cancel_token);
    CHECK(out.set == 7);
}
