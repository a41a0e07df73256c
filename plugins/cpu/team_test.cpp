#include "team.h"

#include <doctest/doctest.h>

#include <chrono>

#include "isa.h"

namespace tenon::cpu {
namespace {

struct Rounds {
    std::vector<int64_t> cells;
    std::atomic<int64_t> claimed_sum{0};
    std::atomic<bool> torn{false};
};

void many_rounds(void *context, Crew &crew) {
    Rounds &r = *static_cast<Rounds *>(context);
    for (int64_t round = 1; round <= 200; ++round) {
        r.cells[crew.thread()] = round;
        for (int64_t i = crew.next(); i < 10; i = crew.next()) r.claimed_sum += i;
        crew.barrier();
        for (unsigned t = 0; t < crew.threads(); ++t) {
            if (r.cells[t] != round) r.torn = true;
        }
        crew.barrier();
    }
}

TEST_CASE("team: barriers order writes, every piece is claimed once, whatever the number of threads") {
    Team team;
    for (unsigned threads : {1u, 2u, 5u, 3u, 1u, 8u}) {
        REQUIRE(team.resize(threads) == "");
        CHECK(team.threads() == threads);
        for (int again = 0; again < 3; ++again) {
            Rounds r;
            r.cells.resize(threads);
            team.run(many_rounds, &r);
            CHECK_FALSE(r.torn);
            CHECK(r.claimed_sum == 200 * 45);
        }
    }
}

TEST_CASE("team: shares cover everything once") {
    Team team;
    REQUIRE(team.resize(3) == "");
    for (int64_t n : {0, 1, 2, 3, 100}) {
        struct Context {
            int64_t n;
            std::atomic<int64_t> covered{0};
        } context{n};
        team.run(
            [](void *c, Crew &crew) {
                auto &ctx = *static_cast<Context *>(c);
                const auto [first, last] = crew.share(ctx.n);
                ctx.covered += last - first;
            },
            &context);
        CHECK(context.covered == n);
    }
}

TEST_CASE("team: several callers take turns, also with a resize between them") {
    Team team;
    REQUIRE(team.resize(2) == "");
    std::atomic<int> inside{0}, overlaps{0}, runs{0};
    struct Context {
        std::atomic<int> &inside, &overlaps, &runs;
    } context{inside, overlaps, runs};
    const auto caller = [&] {
        for (int i = 0; i < 100; ++i) {
            team.run(
                [](void *c, Crew &crew) {
                    auto &ctx = *static_cast<Context *>(c);
                    if (crew.thread() != 0) return;
                    if (ctx.inside.fetch_add(1) != 0) ++ctx.overlaps;
                    ++ctx.runs;
                    --ctx.inside;
                },
                &context);
        }
    };
    std::thread a(caller), b(caller);
    for (unsigned threads : {3u, 1u, 2u}) CHECK(team.resize(threads) == "");
    a.join();
    b.join();
    CHECK(runs == 200);
    CHECK(overlaps == 0);
}

TEST_CASE("team: sleeps between runs and wakes again") {
    Team team;
    REQUIRE(team.resize(2) == "");
    const auto cpu_seconds = [] {
        timespec t{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
    };
    std::atomic<int> hits{0};
    const auto hit = [](void *c, Crew &) { ++*static_cast<std::atomic<int> *>(c); };
    team.run(hit, &hits);
    const double begin = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(cpu_seconds() - begin < 0.05);
    team.run(hit, &hits);
    CHECK(hits == 4);
}

TEST_CASE("team: there is a usable core") {
    CHECK(usable_cores() >= 1);
    CHECK(usable_cores() <= Team::max_threads);
}

TEST_CASE("isa: names are known or refused with the reason") {
    Features out = 77;
    CHECK(parse_isa("reference", isa_avx2, out) == "");
    CHECK(out == isa_reference);
    CHECK(parse_isa("auto", isa_avx2, out) == "");
    CHECK(out == isa_avx2);
    CHECK(parse_isa("avx2", isa_avx2 | 2u, out) == "");
    CHECK(out == isa_avx2);
    out = 77;
    CHECK(parse_isa("avx2", isa_reference, out).find("lacks") != std::string::npos);
    CHECK(parse_isa("sse9", isa_avx2, out).find("unknown") != std::string::npos);
    CHECK(out == 77);
}

TEST_CASE("isa: the first row that fits is taken") {
    const Row<int> rows[] = {{"b", 2, 3}, {"a", isa_avx2, 2}, {"reference", 0, 1}};
    CHECK(choose(rows, isa_reference).fn == 1);
    CHECK(choose(rows, isa_avx2).fn == 2);
    CHECK(choose(rows, isa_avx2 | 2u).fn == 3);
}

}  // namespace
}  // namespace tenon::cpu
