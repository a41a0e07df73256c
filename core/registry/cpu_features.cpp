#include "registry/cpu_features.h"

#include <sys/utsname.h>

#include <fstream>
#include <iterator>

#include "base/text.h"

namespace tenon {

std::string_view host_architecture() noexcept {
#if defined(__x86_64__)
    return "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#elif defined(__riscv) && __riscv_xlen == 64
    return "riscv64";
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
    return "ppc64le";
#elif defined(__s390x__)
    return "s390x";
#elif defined(__loongarch64)
    return "loongarch64";
#else
    static const utsname name = [] {
        utsname n{};
        uname(&n);
        return n;
    }();
    return name.machine;
#endif
}

std::string normalised_feature(std::string_view name) {
    std::string out;
    for (char c : ascii_lower(name))
        if (c != '.' && c != '_' && c != '-') out += c;
    return out;
}

std::set<std::string> parse_cpu_features(std::string_view cpuinfo) {
    std::set<std::string> out;
    while (!cpuinfo.empty()) {
        std::string_view line = cpuinfo.substr(0, cpuinfo.find('\n'));
        cpuinfo.remove_prefix(std::min(line.size() + 1, cpuinfo.size()));
        size_t colon = line.find(':');
        if (colon == std::string_view::npos) continue;
        std::string_view key = line.substr(0, line.find_first_of(" \t:"));
        if (key != "flags" && key != "Features") continue;
        std::string_view words = line.substr(colon + 1);
        for (size_t at = 0; (at = words.find_first_not_of(" \t", at)) != std::string_view::npos;) {
            size_t end = std::min(words.find_first_of(" \t", at), words.size());
            out.insert(normalised_feature(words.substr(at, end - at)));
            at = end;
        }
        break;  // the kernel lists for every processor what all of them have
    }
    return out;
}

const std::set<std::string> &host_cpu_features() {
    static const std::set<std::string> features = [] {
        std::ifstream file("/proc/cpuinfo");
        std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        return parse_cpu_features(text);
    }();
    return features;
}

}  // namespace tenon
