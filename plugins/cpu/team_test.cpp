#include "team.h"

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <utility>

#include "isa.h"

namespace tenon::cpu {
namespace {

// Phases of changing size; each piece counts itself and checks that the phase before is complete.
struct Phases final : Job {
    int64_t next() noexcept override {
        for (int64_t i = 0; i < size; ++i) {
            if (hits[size_t(i)].exchange(0, std::memory_order_relaxed) != 1) wrong = true;
        }
        total += size;
        if (++phase > 300) return 0;
        size = phase % 7 == 0 ? 40 : phase % 3 + 1;
        plain = phase;
        return size;
    }
    void piece(int64_t i) noexcept override {
        if (i < 0 || i >= size || plain != phase) wrong = true;
        hits[size_t(i)].fetch_add(1, std::memory_order_relaxed);
    }
    std::array<std::atomic<int>, 40> hits{};
    std::atomic<bool> wrong{false};
    int64_t size = 0, total = 0;
    int phase = 0, plain = 0;  // not atomic: the team orders them
};

TEST_CASE("team: every piece is computed once and phases follow each other, on any number of threads") {
    Team team;
    int64_t total = 0;
    for (unsigned threads : {1u, 2u, 5u, 3u, 1u, 8u}) {
        REQUIRE(team.resize(threads) == "");
        CHECK(team.threads() == threads);
        for (int again = 0; again < 3; ++again) {
            Phases job;
            team.run(job);
            CHECK_FALSE(job.wrong);
            if (total == 0) total = job.total;
            CHECK(job.total == total);
        }
    }
}

struct Count final : Job {
    explicit Count(int64_t n) : pieces(n) {}
    int64_t next() noexcept override { return std::exchange(pieces, 0); }
    void piece(int64_t) noexcept override { ++hits; }
    int64_t pieces;
    std::atomic<int64_t> hits{0};
};

TEST_CASE("team: several callers take turns, also with a resize between them") {
    Team team;
    REQUIRE(team.resize(2) == "");
    std::atomic<int> overlaps{0}, inside{0};
    struct Turn final : Job {
        Turn(std::atomic<int> &i, std::atomic<int> &o) : inside(i), overlaps(o) {}
        int64_t next() noexcept override {
            if (++phase == 1 && inside.fetch_add(1) != 0) ++overlaps;
            if (phase == 3) --inside;
            return phase == 3 ? 0 : 2;
        }
        void piece(int64_t) noexcept override {}
        std::atomic<int> &inside, &overlaps;
        int phase = 0;
    };
    const auto caller = [&] {
        for (int i = 0; i < 200; ++i) {
            Turn job(inside, overlaps);
            team.run(job);
        }
    };
    std::thread a(caller), b(caller);
    for (unsigned threads : {3u, 1u, 2u}) CHECK(team.resize(threads) == "");
    a.join();
    b.join();
    CHECK(overlaps == 0);
    CHECK(inside == 0);
}

TEST_CASE("team: sleeps between runs and wakes again; an empty job is fine") {
    Team team;
    REQUIRE(team.resize(2) == "");
    const auto cpu_seconds = [] {
        timespec t{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
    };
    Count first(10), second(1000), nothing(0);
    team.run(first);
    const double begin = cpu_seconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    CHECK(cpu_seconds() - begin < 0.05);
    team.run(second);
    team.run(nothing);
    CHECK(first.hits == 10);
    CHECK(second.hits == 1000);
    CHECK(nothing.hits == 0);
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
