#include "registry/manifest.h"

#include <doctest/doctest.h>

#include "registry/fixture_folder.h"

using namespace tenon;
using namespace tenon::fixture;
using nlohmann::json;

static std::string refused(const std::string &text) {
    Manifest manifest;
    Status status = parse_manifest(text, manifest);
    CHECK_MESSAGE(!status.ok(), text);
    return status.message();
}

TEST_CASE("manifest: every key arrives") {
    json text = manifest_of("acme");
    text["cpu_features"] = {"avx2", "sse4.1"};
    text["devices"] = {"Acme", "acme.fast:3"};
    text["description"] = "Fast";
    Manifest m;
    Status status = parse_manifest(text.dump(2), m);
    REQUIRE_MESSAGE(status.ok(), status.message());
    CHECK(m.name == "acme");
    CHECK(m.vendor == "Tenon");
    CHECK(m.version == "1.2.3");
    CHECK(m.description == "Fast");
    CHECK(m.abi_major == 1);
    CHECK(m.file == "acme.so");
    CHECK(m.cpu_features == std::vector<std::string>{"avx2", "sse4.1"});
    CHECK(m.devices == std::vector<std::string>{"acme", "acme.fast:3"});
}

TEST_CASE("manifest: each key is needed, none is unknown, each type is checked") {
    const json good = manifest_of("acme");
    for (const auto &[key, value] : good.items()) {
        json without = good, wrong = good;
        without.erase(key);
        CHECK_HAS(refused(without.dump()), "\"" + key + "\" is missing");
        wrong[key] = 1.5;
        CHECK_HAS(refused(wrong.dump()), "\"" + key + "\"");
    }
    json range = good;
    range["abi"] = {{"major", 1}, {"min", -1}, {"max", 0}};
    CHECK_HAS(refused(range.dump()), "abi.min");
    range["abi"] = {{"major", 1}, {"min", 2}, {"max", 1}};
    CHECK_HAS(refused(range.dump()), "over");
    range["abi"] = {{"major", 1}, {"min", 0}, {"max", 1}, {"extra", 0}};
    CHECK_HAS(refused(range.dump()), "unknown key \"abi.extra\"");
    json extra = good;
    extra["cpu_feature"] = {"avx2"};
    CHECK_HAS(refused(extra.dump()), "unknown key \"cpu_feature\"");
    json mixed = good;
    mixed["devices"] = {"acme", 7};
    CHECK_HAS(refused(mixed.dump()), "\"devices\" isn't a list of strings");
    json later = good;
    later["manifest"] = 2;
    CHECK_HAS(refused(later.dump()), "version 2");
}

TEST_CASE("manifest: JSON errors tell the byte") {
    CHECK_HAS(refused(""), "byte 1");
    CHECK_HAS(refused("{\"manifest\": 1,}"), "byte 16");
    CHECK_HAS(refused("[]"), "isn't an object");
    CHECK_HAS(refused("{\"name\": \"a\", \"name\": \"b\"}"), "\"name\" stands twice");
    CHECK_HAS(refused("{\"name\": \"\xff\"}"), "not JSON");
    CHECK_HAS(refused(std::string(k_max_manifest_bytes + 1, ' ')), "longer than 65536 bytes");
}

TEST_CASE("manifest: names that could leave the folder or break a device list") {
    json m = manifest_of("acme");
    for (const char *file : {"", ".", "..", "../x.so", "/lib/x.so", "a/b.so"}) {
        m["file"] = file;
        CHECK_HAS(refused(m.dump()), "plain file name");
    }
    m = manifest_of("acme");
    for (const char *name : {"", "a b", "a,b", "a:b", "a/b"}) {
        m["name"] = name;
        CHECK_HAS(refused(m.dump()), "\"name\"");
    }
    m = manifest_of("acme");
    for (const char *device : {"", "a b", "a=b", "a:b", "a:", ":1", "a:1:2"}) {
        m["devices"] = {device};
        CHECK_HAS(refused(m.dump()), "\"devices\"");
    }
    m["devices"] = json::array();
    CHECK_HAS(refused(m.dump()), "\"devices\" is empty");
}

TEST_CASE("manifest: what this host can't drive is told with both sides") {
    Manifest good;
    REQUIRE(parse_manifest(manifest_of("acme").dump(), good).ok());
    CHECK(check_manifest(good).ok());

    Manifest m = good;
    m.abi_min = 900, m.abi_max = 901;
    CHECK_HAS(check_manifest(m).message(), "ABI 1.900 to 1.901, this host 1.0");
    m = good;
    m.abi_major = 2;
    CHECK_HAS(check_manifest(m).message(), "ABI 2.0");
    m = good;
    m.arch = "pdp11";
    CHECK_HAS(check_manifest(m).message(), "built for pdp11");
    m = good;
    m.sanitizer = "undefined,memory";
    CHECK_HAS(check_manifest(m).message(), "'undefined,memory'");
    m = good;
    m.cpu_features = {"warp_drive"};
    CHECK_HAS(check_manifest(m).message(), "'warp_drive'");
    m = good;
    m.abi_max = 7;  // a later plugin that still serves this minor
    CHECK(check_manifest(m).ok());
}

TEST_CASE("cpu features: x86 and ARM texts, names compared without punctuation") {
    auto x86 = parse_cpu_features(
        "processor\t: 0\nflags\t\t: fpu sse4_1 avx512_vnni\nbugs\t: x\n\nprocessor\t: 1\nflags\t: more\n");
    CHECK(x86 == std::set<std::string>{"fpu", "sse41", "avx512vnni"});
    CHECK(parse_cpu_features("Features\t: fp asimd sve\n") == std::set<std::string>{"fp", "asimd", "sve"});
    CHECK(parse_cpu_features("").empty());
    CHECK(normalised_feature("SSE4.1") == normalised_feature("sse4_1"));
    CHECK(!host_cpu_features().empty());
}

TEST_CASE("manifest: a listed name without index covers all of its indices") {
    CHECK(covers({"vulkan"}, {"vulkan", 3}));
    CHECK(covers({"vulkan"}, {"vulkan", {}}));
    CHECK(covers({"cpu", "vulkan:1"}, {"vulkan", 1}));
    CHECK(!covers({"vulkan:1"}, {"vulkan", {}}));
    CHECK(covers({"vulkan:0"}, {"vulkan", {}}));
    CHECK(!covers({"cpu"}, {"vulkan", 0}));
}
