#include "base/pattern.h"

#include <doctest/doctest.h>

using namespace tenon;

TEST_CASE("pattern: is searched anywhere in the subject") {
    const auto pattern = Pattern::compile("blk\\.[0-3]\\.");
    REQUIRE(pattern.ok());
    CHECK(*pattern->found_in("x.blk.3.y"));
    CHECK(!*pattern->found_in("blk.4."));
    CHECK(!*pattern->found_in(""));
    CHECK(Pattern::compile("a(").status().code() == Code::invalid_argument);
}

TEST_CASE("pattern: a search that gives up is a failure, not a miss") {
    const auto pattern = Pattern::compile("^(a+)+$");
    REQUIRE(pattern.ok());
    const auto found = pattern->found_in(std::string(60, 'a') + 'b');
    REQUIRE(!found.ok());
    CHECK(found.status().code() == Code::invalid_argument);
    CHECK(found.status().message().find("^(a+)+$") != std::string::npos);
}
