#include "registry/host_services.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "base/plugin_call.h"
#include "base/text.h"
#include "registry/live_count.h"

using namespace tenon;

TEST_CASE("cancel tokens: distinct, raised one by one, unknown ones are harmless") {
    CancelTable table;
    std::vector<uint64_t> tokens;
    for (int i = 0; i < 1000; ++i) tokens.push_back(table.add());
    for (size_t i = 0; i < tokens.size(); ++i) CHECK(tokens[i] == i + 1);
    table.raise(tokens[64]);
    table.raise(tokens[999]);
    for (size_t i = 0; i < tokens.size(); ++i) CHECK(table.raised(tokens[i]) == (i == 64 || i == 999));
    table.clear(tokens[64]);
    CHECK(!table.raised(tokens[64]));
    for (uint64_t unknown : {uint64_t(0), uint64_t(1001), uint64_t(1) << 40, UINT64_MAX}) {
        table.raise(unknown);
        CHECK(!table.raised(unknown));
    }
}

TEST_CASE("cancel tokens: added and asked from several threads at once") {
    CancelTable table;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 500; ++i) {
                uint64_t token = table.add();
                CHECK(!table.raised(token));
                table.raise(token);
                CHECK(table.raised(token));
            }
        });
    }
    for (std::thread &thread : threads) thread.join();
    CHECK(table.add() == 2001);
}

TEST_CASE("memory account: limit, peak, overflow") {
    MemoryAccount account(100);
    CHECK(account.take(60));
    CHECK(!account.take(41));
    CHECK(account.take(40));
    account.give_back(70);
    CHECK(account.bytes_now() == 30);
    CHECK(account.bytes_peak() == 100);
    CHECK(account.allocations() == 2);
    MemoryAccount unlimited(0);
    CHECK(unlimited.take(UINT64_MAX));
    CHECK(!unlimited.take(1));
}

TEST_CASE("live count: shut only when nothing lives, and then nobody enters") {
    LiveCount live;
    CHECK(!live.enter());
    live.open();
    CHECK(live.enter());
    CHECK(!live.shut());
    live.leave();
    CHECK(live.shut());
    CHECK(!live.enter());
    CHECK(live.count() == 0);
    live.open();
    {
        LiveGuard guard(live);
        CHECK(guard);
        CHECK(live.count() == 1);
    }
    CHECK(live.count() == 0);
}

TEST_CASE("plugin texts: paired with the next failure of the thread, once") {
    set_plugin_text("cpu: something");
    CHECK(plugin_failure("cpu", "load", TN_INTERNAL).message() == "cpu: something");
    Status bare = plugin_failure("cpu", "load", TN_OUT_OF_MEMORY);
    CHECK(bare.code() == Code::out_of_memory);
    CHECK(bare.message() == "cpu: load answered 'out of memory' and gave no reason");

    set_plugin_text("old");
    set_plugin_text("new");
    CHECK(plugin_failure("cpu", "load", TN_BUSY).message() == "cpu: new");
    set_plugin_text("something");
    set_plugin_text(nullptr);
    CHECK(plugin_failure("cpu", "load", TN_BUSY).message().find("no reason") != std::string::npos);

    set_plugin_text("another thread's");
    std::thread([] {
        CHECK(plugin_failure("cpu", "x", TN_BUSY).message().find("another") == std::string::npos);
    }).join();
    clear_plugin_text();
}

TEST_CASE("plugin texts: a status that the ABI doesn't list is internal and shows its number") {
    for (tn_status status : {14, 4711, -1}) {
        set_plugin_text("text");
        Status s = plugin_failure("x", "load", status);
        CHECK(s.code() == Code::internal);
        CHECK(s.message().find("text") != std::string::npos);
        CHECK(s.message().find(std::to_string(status)) != std::string::npos);
    }
}

TEST_CASE("plugin texts: cut at a character, cleaned of what isn't text") {
    std::string longer(1999, 'a');
    longer += "\xc3\xa9 and more";
    set_plugin_text(longer.c_str());
    CHECK(plugin_failure("x", "y", TN_INTERNAL).message() == "x: " + std::string(1999, 'a'));
    set_plugin_text("a\x1b[31mb\n\xff\xc3\xa9");
    CHECK(plugin_failure("x", "y", TN_INTERNAL).message() == "x: a [31mb ?\xc3\xa9");
}

TEST_CASE("printable: valid UTF-8 stays, all else is replaced, one byte each") {
    CHECK(printable("h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80") == "h\xc3\xa9llo \xe2\x82\xac \xf0\x9f\x98\x80");
    CHECK(printable("\xc0\x80") == "??");            // overlong
    CHECK(printable("\xed\xa0\x80") == "???");       // surrogate
    CHECK(printable("\xf4\x90\x80\x80") == "????");  // beyond U+10FFFF
    CHECK(printable("\xe2\x82") == "??");            // cut
    CHECK(printable("\xc2\x9b"
                    "31m") == " 31m");  // C1 control
    CHECK(printable("abc\xc3\xa9", 4) == "abc");
    CHECK(utf8_prefix("abc\xc3\xa9", 4) == 3);
    CHECK(utf8_prefix("abc\xc3\xa9", 5) == 5);
    CHECK(ascii_lower("CPU\xc3\x89") == "cpu\xc3\x89");
}
