// What commands share: numbers, options, suggestions, JSON.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "cmd/command.h"
#include "cmd/support/input.h"
#include "cmd/support/nearest.h"
#include "cmd/support/options.h"
#include "cmd/support/output.h"

using namespace tenon;
using namespace tenon::cmd;

namespace {

/// The options of an imaginary command.
struct Parsed {
    std::string model, mode = "fast";
    bool json = false;
    int64_t count = 7;
    std::optional<double> temperature;
    std::vector<std::string> stops;
    std::optional<std::string> prompt, file;
    std::optional<int> exit_code;

    explicit Parsed(std::vector<std::string> args) {
        Options options("test", "Tests options");
        options.positional("MODEL", "a model", model)
            .flag("json", "print JSON", json)
            .integer("tokens,n", "N", "how many", -1, 100, count)
            .number("temp", "T", "temperature", 0, 10, temperature)
            .texts("stop", "S", "where to stop", stops)
            .choice("precision", "how exact", {"exact", "fast"}, mode)
            .text("prompt,p", "TEXT", "text", prompt)
            .text("file,f", "FILE", "file", file)
            .exclusive({"prompt", "file"});
        exit_code = options.parse(args);
    }
};

}  // namespace

TEST_CASE("numbers are read whole, within their range, and finite") {
    auto integer = [](std::string_view text) { return parse_integer(text, -5, 100).ok(); };
    for (std::string_view good : {"0", "-5", "100", "007"}) CHECK(integer(good));
    for (std::string_view bad :
         {"", " 1", "1 ", "12abc", "1.0", "1e1", "0x10", "+1", "-6", "101", "99999999999999999999", "--1"}) {
        CAPTURE(bad);
        CHECK_FALSE(integer(bad));
    }
    auto number = [](std::string_view text) { return parse_number(text, 0, 1e9).ok(); };
    for (std::string_view good : {"0", "0.5", "1e3", ".5", "5."}) CHECK(number(good));
    for (std::string_view bad : {"", "nan", "inf", "1e999", "-0.1", "0.5x", "0,5", "0x1p3"}) {
        CAPTURE(bad);
        CHECK_FALSE(number(bad));
    }
    CHECK(parse_integer("x", 1, 9).status().message() == "'x' isn't an integer from 1 to 9");
    CHECK(*parse_integer("9223372036854775807", 0, std::numeric_limits<int64_t>::max()) ==
          std::numeric_limits<int64_t>::max());
}

TEST_CASE("options: long and short forms, order and values that look like options") {
    Parsed all(
        {"--json", "m.gguf", "-n", "5", "--temp=0.5", "--stop", "a", "--stop", "b", "--precision", "exact", "-p", ""});
    REQUIRE_FALSE(all.exit_code);
    CHECK(all.model == "m.gguf");
    CHECK(all.json);
    CHECK(all.count == 5);
    CHECK(all.temperature == 0.5);
    CHECK(all.stops == std::vector<std::string>{"a", "b"});
    CHECK(all.mode == "exact");
    CHECK(all.prompt == "");

    Parsed defaults({"m.gguf"});
    REQUIRE_FALSE(defaults.exit_code);
    CHECK(defaults.count == 7);
    CHECK_FALSE(defaults.temperature);
    CHECK(defaults.mode == "fast");

    Parsed odd({"-n", "-1", "-p", "- a list\n--json", "--", "--json"});
    REQUIRE_FALSE(odd.exit_code);
    CHECK(odd.count == -1);
    CHECK(odd.prompt == "- a list\n--json");
    CHECK(odd.model == "--json");
    CHECK_FALSE(odd.json);

    Parsed bytes({"m", "-p", "\xff\xfe"});
    REQUIRE_FALSE(bytes.exit_code);
    CHECK(bytes.prompt == "\xff\xfe");
}

TEST_CASE("options: what is wrong ends with the code for usage") {
    const std::vector<std::vector<std::string>> wrong{
        {},                                     // no model
        {"m", "extra"},                         // too many
        {"m", "--jso"},                         // a prefix isn't an option
        {"m", "-x"},                            // unknown
        {"m", "--temp"},                        // value missing
        {"m", "--temp", "hot"},                 // no number
        {"m", "--temp", "11"},                  // out of range
        {"m", "-n", "1.5"},                     // no integer
        {"m", "--precision", "exac"},           // no choice
        {"m", "--json", "--json"},              // twice
        {"m", "--json=yes"},                    // a flag has no value
        {"m", "-p", "text", "--file", "name"},  // exclusive
        {"m", "--", "-n", "5"},                 // too many behind --
    };
    for (const auto &args : wrong) {
        CAPTURE(args.empty() ? std::string() : args.back());
        CHECK(Parsed(args).exit_code == k_usage);
    }
}

TEST_CASE("options: the help shows every name, value and default, within 100 columns") {
    std::string model, text = "x";
    int64_t count = 7;
    std::optional<double> unset;
    Options options("test", "Tests options", "Details at the end.");
    options.positional("MODEL", "a model", model)
        .integer("tokens,n", "N",
                 "a text that is so long that it can't stand on one line of the help, which has a width of "
                 "one hundred columns at most",
                 0, 9, count)
        .number("temp", "T", "temperature", 0, 10, unset)
        .choice("mode", "how", {"one", "two"}, text);
    const std::string help = options.help();
    CAPTURE(help);
    for (std::string_view part : {"Usage: tenon test MODEL", "-n, --tokens N", "(default: 7)", "--temp T",
                                  "--mode one|two", "-h, --help", "Details at the end."}) {
        CHECK(help.find(part) != help.npos);
    }
    for (size_t begin = 0, end; (end = help.find('\n', begin)) != help.npos; begin = end + 1) CHECK(end - begin <= 100);
}

TEST_CASE("nearest: mistyped names are found, unlike ones aren't") {
    const std::vector<std::string_view> names{"bench",   "chat", "devices", "inspect",
                                              "plugins", "run",  "score",   "tokenize"};
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("abcd", "acbd") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(nearest("inpsect", names) == "inspect");
    CHECK(nearest("tokenise", names) == "tokenize");
    CHECK(nearest("rn", names) == "run");
    CHECK(nearest("dev", names) == "devices");
    CHECK(nearest("zzz", names).empty());
    CHECK(nearest("", names).empty());
    CHECK(suggestion("scor", names) == "; did you mean 'score'?");
    CHECK(suggestion("quantize-everything", names).empty());
}

TEST_CASE("json_text: valid JSON from any bytes and numbers") {
    nlohmann::ordered_json value{
        {"text", "a\xff\n"}, {"none", std::numeric_limits<double>::quiet_NaN()}, {"big", ~0ull}};
    CHECK(json_text(value) == "{\"text\":\"a\xef\xbf\xbd\\n\",\"none\":null,\"big\":18446744073709551615}");
}

TEST_CASE("read_text: the bytes as they are, from each source") {
    // A line feed at the end, a zero byte, bytes that aren't UTF-8, and more than one read takes.
    const std::string bytes = std::string("a\0\xff\xfe", 4) + std::string(200000, 'x') + "\n";
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const std::filesystem::path path = folder / ("tenon-read-text-" + std::to_string(::getpid()));
    std::ofstream(path, std::ios::binary) << bytes;

    CHECK(*read_text({.prompt = "", .file = {}}) == "");
    CHECK(*read_text({.prompt = "\xff\n", .file = {}}) == "\xff\n");
    Result<std::string> file = read_text({.prompt = {}, .file = path.string()});
    REQUIRE(file.ok());
    CHECK(*file == bytes);

    const int saved = ::dup(STDIN_FILENO);
    for (const std::optional<std::string> &name : {std::optional<std::string>(), std::optional<std::string>("-")}) {
        REQUIRE(std::freopen(path.c_str(), "rb", stdin) != nullptr);
        Result<std::string> input = read_text({.prompt = {}, .file = name});
        REQUIRE(input.ok());
        CHECK(*input == bytes);
    }
    if (saved >= 0) {
        ::dup2(saved, STDIN_FILENO);
        ::close(saved);
    }
    std::filesystem::remove(path);

    const Status missing = read_text({.prompt = {}, .file = path.string()}).status();
    CHECK(missing.code() == Code::not_found);
    CHECK(missing.message().find(path.string()) != std::string::npos);
    CHECK(read_text({.prompt = {}, .file = folder.string()}).status().code() == Code::invalid_argument);
}
