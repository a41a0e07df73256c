#include "registry/device_list.h"

#include <doctest/doctest.h>

using namespace tenon;
using Options = std::vector<std::pair<std::string, std::string>>;

static std::vector<DeviceSpec> parsed(std::string_view list) {
    auto specs = parse_device_list(list);
    REQUIRE_MESSAGE(specs.ok(), specs.status().message());
    return *specs;
}

static std::string refused(std::string_view list) {
    auto specs = parse_device_list(list);
    CHECK_MESSAGE(!specs.ok(), list);
    CHECK(specs.status().code() == Code::invalid_argument);
    return specs.status().message();
}

TEST_CASE("device list: names, indices and options") {
    CHECK(parsed("").empty());
    CHECK(parsed(" \t ").empty());
    CHECK(parsed("cpu") == std::vector<DeviceSpec>{{"cpu", {}, {}}});
    CHECK(parsed("Vulkan:1,CPU") == std::vector<DeviceSpec>{{"vulkan", 1, {}}, {"cpu", {}, {}}});
    CHECK(parsed("cpu:threads=4") == std::vector<DeviceSpec>{{"cpu", {}, {{"threads", "4"}}}});
    CHECK(parsed("cpu:0:threads=4:isa=avx2") ==
          std::vector<DeviceSpec>{{"cpu", 0, {{"threads", "4"}, {"isa", "avx2"}}}});
}

TEST_CASE("device list: an item K=V continues the device before it") {
    CHECK(parsed("cpu:threads=4,isa=avx2") == parsed("cpu:threads=4:isa=avx2"));
    CHECK(parsed("vulkan:1,cpu,threads=2,isa=x:a=b") ==
          std::vector<DeviceSpec>{{"vulkan", 1, {}}, {"cpu", {}, {{"threads", "2"}, {"isa", "x"}, {"a", "b"}}}});
    CHECK(parsed("cpu:path=a=b") == std::vector<DeviceSpec>{{"cpu", {}, {{"path", "a=b"}}}});
    CHECK(parsed("cpu:isa=") == std::vector<DeviceSpec>{{"cpu", {}, {{"isa", ""}}}});
}

TEST_CASE("device list: spaces around items and parts don't count") {
    CHECK(parsed(" cpu : threads = 4 , isa = avx2 , vulkan : 1 ") == parsed("cpu:threads=4,isa=avx2,vulkan:1"));
}

TEST_CASE("device list: the same device twice needs different options") {
    CHECK(parsed("cpu:threads=1,cpu:threads=2").size() == 2);
    CHECK(refused("cpu,cpu").find("twice") != std::string::npos);
    CHECK(refused("cpu:threads=1,CPU:0:threads=1").find("twice") != std::string::npos);
}

TEST_CASE("device list: what is wrong is told with its item") {
    CHECK(refused("cpu,,vulkan").find("empty") != std::string::npos);
    CHECK(refused("cpu,").find("empty") != std::string::npos);
    CHECK(refused(",").find("empty") != std::string::npos);
    CHECK(refused("threads=4").find("before it") != std::string::npos);
    CHECK(refused("cpu:=4").find("name before '='") != std::string::npos);
    CHECK(refused("cpu:four").find("'four' is neither") != std::string::npos);
    CHECK(refused("cpu:-1").find("'-1' is neither") != std::string::npos);
    CHECK(refused("cpu:99999999999").find("neither") != std::string::npos);
    CHECK(refused("cpu:1:2").find("'2' is neither") != std::string::npos);
    CHECK(refused("cpu:threads=4:1").find("'1' is neither") != std::string::npos);
    CHECK(refused("cpu,threads=4:1").find("'1' is neither") != std::string::npos);
    CHECK(refused("cpu:").find("'' is neither") != std::string::npos);
    CHECK(refused(":1").find("name is missing") != std::string::npos);
    CHECK(refused("cpu:threads=4,threads=5").find("'threads' of cpu is given twice") != std::string::npos);
}
