// Streams and events: order under random delays, poison, rounds, cancellation, timed waits, a lost device (D27 to D32,
// D41).
#include <chrono>
#include <cmath>

#include "segment.h"

namespace abi_test {
namespace {

/// y = x + x, many times over: count -> 2 count on one buffer.
struct Doubling {
    GraphBuilder g;
    uint32_t x = g.value(tensor({64}, TN_TYPE_ID_F32, 0, TN_VALUE_INPUT));
    uint32_t y = g.value(tensor({64}, TN_TYPE_ID_F32, 0, TN_VALUE_OBSERVED));
    Doubling() { g.node(TN_OP_ADD, {x, x}, {y}); }
};

struct Fixture {
    Host host;
    Plugin plugin{mock_library(), host};
    OpenDevice device{plugin, host.adapters.at("mock:0")};
    Doubling graph;
    Segment s{device, graph.g};
    tn_stream stream = device.stream(), second = device.stream();
    tn_event event = device.event();
    const tn_stream_api &streams = *plugin.root->stream;
    const tn_event_api &events = *plugin.root->event;

    Fixture() {
        s.ready(2);
        for (uint32_t set = 0; set < 2; ++set) s.write(graph.x, std::vector<float>(64, 1), set);
    }
    ~Fixture() {
        streams.destroy(stream), streams.destroy(second);
        events.destroy(event);
    }
    tn_status sync(tn_stream on) const { return streams.synchronize(on, TN_FOREVER); }
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "work runs in the order in which it was queued, whatever the delays") {
    device.set("delay_us", "200");
    const tn_value x = s.in_buffer(graph.x), y = s.in_buffer(graph.y);
    std::vector<std::vector<float>> in, out(100, std::vector<float>(64));
    for (int i = 0; i < 100; ++i) in.push_back(std::vector<float>(64, static_cast<float>(i)));
    for (size_t i = 0; i < 100; ++i) {  // more items than the ring has places
        REQUIRE(streams.set(stream, s.buffer(), &x, 0, in[i].data(), 256) == TN_OK);
        REQUIRE(s.run(stream) == TN_OK);
        REQUIRE(streams.get(stream, s.buffer(), &y, 0, out[i].data(), 256) == TN_OK);
    }
    CHECK(sync(stream) == TN_OK);
    for (size_t i = 0; i < 100; ++i) CHECK(out[i] == std::vector<float>(64, static_cast<float>(2 * i)));
}

TEST_CASE_FIXTURE(Fixture, "events order two streams that share memory") {
    device.set("delay_us", "100");
    tn_event back = device.event();
    const tn_value x = s.in_buffer(graph.x), y = s.in_buffer(graph.y);
    for (int i = 0; i < 50; ++i) {  // stream doubles, second copies the result back to x
        REQUIRE(s.run(stream) == TN_OK);
        REQUIRE(events.record(event, stream) == TN_OK);
        REQUIRE(events.wait(event, second) == TN_OK);
        REQUIRE(streams.copy(second, s.buffer(), &x, s.buffer(), &y) == TN_OK);
        REQUIRE(events.record(back, second) == TN_OK);
        REQUIRE(events.wait(back, stream) == TN_OK);
    }
    CHECK(events.synchronize(back, TN_FOREVER) == TN_OK);
    CHECK(s.read(graph.x, 1)[0] == std::ldexp(1.0f, 50));
    CHECK(sync(stream) == TN_OK);
    CHECK(sync(second) == TN_OK);
    events.destroy(back);
}

TEST_CASE_FIXTURE(Fixture, "two sets run at once on two streams") {
    device.set("delay_us", "100");
    for (uint32_t set = 0; set < 2; ++set)
        s.write(graph.x, std::vector<float>(64, 10.0f * static_cast<float>(set + 1)), set);
    for (int i = 0; i < 20; ++i) {
        REQUIRE(s.run(stream, 0) == TN_OK);
        REQUIRE(s.run(second, 1) == TN_OK);
    }
    CHECK(sync(stream) == TN_OK);
    CHECK(sync(second) == TN_OK);
    CHECK(s.read(graph.y, 1, 0)[0] == 20);
    CHECK(s.read(graph.y, 1, 1)[0] == 40);
}

TEST_CASE_FIXTURE(Fixture, "the first failure poisons: the rest is skipped, told once, cleared (D27, D28)") {
    device.set("fail_run", "2");
    const tn_value x = s.in_buffer(graph.x);
    const std::vector<float> fives(64, 5);
    CHECK(s.run(stream) == TN_OK);
    CHECK(s.run(stream) == TN_OK);  // fails, later
    CHECK(streams.set(stream, s.buffer(), &x, 0, fives.data(), 256) == TN_OK);
    CHECK(events.record(event, stream) == TN_OK);
    CHECK(events.wait(event, second) == TN_OK);
    CHECK(s.run(second, 1) == TN_OK);
    last_error().clear();
    CHECK(sync(second) == TN_INTERNAL);  // through the event
    CHECK(last_error().find("on demand") != std::string::npos);
    last_error().clear();
    CHECK(events.synchronize(event, TN_FOREVER) == TN_INTERNAL);
    CHECK(events.synchronize(event, 0) == TN_INTERNAL);  // not cleared
    last_error().clear();
    CHECK(sync(stream) == TN_INTERNAL);
    CHECK(last_error().find("on demand") != std::string::npos);
    CHECK(sync(stream) == TN_OK);
    CHECK(sync(second) == TN_OK);
    CHECK(s.read(graph.x, 1)[0] == 1);  // the set was skipped
    CHECK(events.synchronize(event, 0) == TN_INTERNAL);
    CHECK(events.record(event, stream) == TN_OK);  // a new round
    CHECK(events.synchronize(event, TN_FOREVER) == TN_OK);
    CHECK(s.run(stream) == TN_OK);
    CHECK(sync(stream) == TN_OK);
}

TEST_CASE_FIXTURE(Fixture, "a call speaks of its own arguments, also on a poisoned stream") {
    device.set("fail_run", "1");
    CHECK(s.run(stream) == TN_OK);
    while (events.record(event, stream) == TN_OK && events.synchronize(event, TN_FOREVER) == TN_OK) {
    }
    CHECK(s.run(stream) == TN_OK);
    CHECK(s.run(stream, 7) == TN_INVALID_STATE);
    const tn_value x = s.in_buffer(graph.x);
    float one = 0;
    CHECK(streams.get(stream, s.buffer(), &x, 0, &one, 4) == TN_OK);
    CHECK(streams.get(stream, s.buffer(), &x, 256, &one, 4) == TN_INVALID_ARGUMENT);
    CHECK(sync(stream) == TN_INTERNAL);
}

TEST_CASE_FIXTURE(Fixture,
                  "rounds: never recorded is done; a wait means the rounds before it, a later one changes nothing") {
    CHECK(events.synchronize(event, 0) == TN_OK);
    CHECK(events.wait(event, second) == TN_OK);
    CHECK(sync(second) == TN_OK);

    device.set("delay_us", "3000");
    CHECK(events.record(event, stream) == TN_OK);  // round 1, good
    CHECK(events.wait(event, second) == TN_OK);    // means round 1
    device.set("fail_run", "1");
    CHECK(s.run(stream) == TN_OK);
    CHECK(events.record(event, stream) == TN_OK);  // round 2, failed
    CHECK(events.synchronize(event, TN_FOREVER) == TN_INTERNAL);
    CHECK(sync(second) == TN_OK);
    CHECK(sync(stream) == TN_INTERNAL);

    // the other way: a wait for a failed round stays failed, though the next round is good
    device.set("fail_run", "1");
    CHECK(s.run(second, 1) == TN_OK);  // holds the second stream up, good
    CHECK(sync(second) == TN_INTERNAL);
    device.set("fail_run", "2");
    CHECK(s.run(second, 1) == TN_OK);
    CHECK(sync(second) == TN_OK);
    CHECK(s.run(stream) == TN_OK);
    CHECK(events.record(event, stream) == TN_OK);  // failed round
    CHECK(events.wait(event, second) == TN_OK);
    CHECK(sync(stream) == TN_INTERNAL);
    CHECK(events.record(event, stream) == TN_OK);  // good round
    CHECK(events.synchronize(event, TN_FOREVER) == TN_OK);
    CHECK(sync(second) == TN_INTERNAL);
}

TEST_CASE_FIXTURE(Fixture, "rounds on two streams end in any order") {
    device.set("delay_us", "20000");
    CHECK(s.run(stream) == TN_OK);
    CHECK(events.record(event, stream) == TN_OK);  // slow
    tn_stream third = device.stream();
    CHECK(events.wait(event, third) == TN_OK);  // means the slow one
    CHECK(events.record(event, second) == TN_OK);
    CHECK(events.synchronize(event, TN_FOREVER) == TN_OK);  // the second one
    CHECK(sync(third) == TN_OK);
    CHECK(s.read(graph.y, 1)[0] == 2);  // so the slow run has passed
    streams.destroy(third);
}

TEST_CASE_FIXTURE(Fixture, "an event of another device is refused (D31)") {
    OpenDevice other(plugin, host.adapters.at("mock:1"));
    tn_event foreign = other.event();
    last_error().clear();
    CHECK(events.record(foreign, stream) == TN_INVALID_ARGUMENT);
    CHECK(!last_error().empty());
    CHECK(events.wait(foreign, stream) == TN_INVALID_ARGUMENT);
    CHECK(sync(stream) == TN_OK);
    events.destroy(foreign);
}

TEST_CASE_FIXTURE(Fixture, "a raised token stops a run between groups; all else is intact (D41)") {
    host.cancelled_token = 42;
    CHECK(s.run(stream, 0, 42) == TN_OK);
    CHECK(sync(stream) == TN_CANCELLED);
    CHECK(!last_error().empty());
    const int64_t asked = host.calls_to_cancelled;
    CHECK(s.run(stream, 0, 43) == TN_OK);
    CHECK(sync(stream) == TN_OK);
    CHECK(host.calls_to_cancelled > asked);
    const int64_t before = host.calls_to_cancelled;
    CHECK(s.run(stream, 0, 0) == TN_OK);
    CHECK(sync(stream) == TN_OK);
    CHECK(host.calls_to_cancelled == before);
}

TEST_CASE_FIXTURE(Fixture, "timed waits: 0 asks, a short time passes, nothing changes") {
    device.set("delay_us", "300000");
    std::vector<tn_status> seen;
    for (int i = 0; i < 8; ++i) CHECK(s.run(stream) == TN_OK);
    CHECK(events.record(event, stream) == TN_OK);
    CHECK(streams.synchronize(stream, 0) == TN_TIMEOUT);
    CHECK(events.synchronize(event, 0) == TN_TIMEOUT);
    auto begin = std::chrono::steady_clock::now();
    CHECK(streams.synchronize(stream, 20000000) == TN_TIMEOUT);
    CHECK(events.synchronize(event, 20000000) == TN_TIMEOUT);
    CHECK(seconds_since(begin) >= 0.039);
    device.set("delay_us", "0");
    CHECK(events.synchronize(event, UINT64_MAX - 1) == TN_OK);
    CHECK(streams.synchronize(stream, TN_FOREVER) == TN_OK);
    CHECK(s.read(graph.y, 1)[0] == 2);
}

TEST_CASE_FIXTURE(Fixture, "destroying a stream finishes what is queued and waits (D30)") {
    device.set("delay_us", "2000");
    tn_stream brief = device.stream();
    std::vector<float> out(64);
    const tn_value y = s.in_buffer(graph.y);
    CHECK(s.run(brief) == TN_OK);
    CHECK(streams.get(brief, s.buffer(), &y, 0, out.data(), 256) == TN_OK);
    streams.destroy(brief);
    CHECK(out[0] == 2);
}

TEST_CASE_FIXTURE(Fixture, "a lost device lets nobody wait, for good (D28, D29)") {
    device.set("lost", "1");
    device.set("delay_us", "1000");
    CHECK(s.run(stream) == TN_OK);
    CHECK(events.record(event, stream) == TN_OK);
    CHECK(events.wait(event, second) == TN_OK);
    std::thread waiter([&] { CHECK(events.synchronize(event, TN_FOREVER) == TN_DEVICE_LOST); });
    CHECK(sync(stream) == TN_DEVICE_LOST);
    CHECK(sync(stream) == TN_DEVICE_LOST);
    CHECK(last_error().find("on demand") != std::string::npos);
    CHECK(sync(second) == TN_DEVICE_LOST);
    waiter.join();
    tn_stream more = nullptr;
    tn_buffer buffer = nullptr;
    CHECK(streams.create(device.handle, &more) == TN_DEVICE_LOST);
    CHECK(plugin.root->buffer_type->alloc(device.type, 16, TN_USAGE_ANY, &buffer) == TN_DEVICE_LOST);
    const tn_value x = s.in_buffer(graph.x);
    float one = 0;
    CHECK(plugin.root->buffer->get(s.buffer(), &x, 0, &one, 4) == TN_DEVICE_LOST);
    for (int i = 0; i < 300; ++i) CHECK(s.run(stream) == TN_OK);  // queuing is skipped, also beyond the ring
    OpenDevice again(plugin, host.adapters.at("mock:0"));         // another open works
    tn_stream fresh = again.stream();
    CHECK(sync(fresh) == TN_OK);
    streams.destroy(fresh);
}

TEST_CASE_FIXTURE(Fixture, "whoever waits when the device is lost is woken, not when the work ends (D29)") {
    OpenDevice slow(plugin, host.adapters.at("mock:1"),
                    {{"seed", "52"}});  // whose first delay is 1.45 s of at most 1.5
    Doubling doubling;
    {
        Segment held(slow, doubling.g);
        held.ready();
        held.write(doubling.x, std::vector<float>(64, 1));
        tn_stream busy = slow.stream(), loses = slow.stream();
        tn_event mark = slow.event();
        slow.set("delay_us", "1500000");
        const int64_t asked = host.calls_to_cancelled;
        const auto begin = std::chrono::steady_clock::now();
        CHECK(held.run(busy, 0, 7) == TN_OK);
        CHECK(events.record(mark, busy) == TN_OK);
        while (host.calls_to_cancelled == asked) std::this_thread::yield();  // it runs, and is held up
        std::thread waiter([&] { CHECK(events.synchronize(mark, TN_FOREVER) == TN_DEVICE_LOST); });
        std::thread breaker([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            slow.set("lost", "1");
            CHECK(held.run(loses) == TN_OK);
        });
        CHECK(sync(busy) == TN_DEVICE_LOST);
        waiter.join();
        CHECK(seconds_since(begin) < 1.2);
        breaker.join();
        streams.destroy(busy), streams.destroy(loses);
        events.destroy(mark);
    }
}

TEST_CASE_FIXTURE(Fixture, "many threads, each with its own stream and event") {
    device.set("delay_us", "20");
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            tn_stream own = device.stream();
            tn_event mark = device.event();
            tn_buffer buffer = device.alloc(256);
            tn_value v = tensor({64});
            for (int i = 0; i < 50; ++i) {
                std::vector<float> in(64, static_cast<float>(i)), out(64);
                CHECK(streams.set(own, buffer, &v, 0, in.data(), 256) == TN_OK);
                CHECK(streams.get(own, buffer, &v, 0, out.data(), 256) == TN_OK);
                CHECK(events.record(mark, own) == TN_OK);
                CHECK(events.synchronize(mark, TN_FOREVER) == TN_OK);
                CHECK(out == in);
            }
            streams.destroy(own);
            events.destroy(mark);
            plugin.root->buffer->destroy(buffer);
        });
    }
    for (std::thread &thread : threads) thread.join();
}

}  // namespace abi_test
