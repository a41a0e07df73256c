// How many cores a process may use: what Linux says in its affinity mask, in sysfs, and in the control group's quota.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "team.h"

namespace tenon::cpu {
namespace {

// First processor of the core to which this one belongs, or the processor itself where sysfs doesn't say.
unsigned first_sibling(unsigned processor) {
    std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology/thread_siblings_list");
    unsigned first = 0;
    return file >> first ? first : processor;
}

unsigned cores_in_mask() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) {
        // More than CPU_SETSIZE processors, or no such call.
        const long online = sysconf(_SC_NPROCESSORS_ONLN);
        return online > 0 ? unsigned(online) : 1;
    }
    std::set<unsigned> cores;
    for (unsigned i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &mask)) cores.insert(first_sibling(i));
    }
    return unsigned(cores.size());
}

// The path of this process's version 2 control group below /sys/fs/cgroup, or "".
std::string control_group() {
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        if (line.rfind("0::", 0) == 0) return line.substr(3);
    }
    return "";
}

// Cores' worth of time that the quotas of the group and its parents leave, 0 where there is none.
unsigned cores_by_quota() {
    unsigned least = 0;
    for (std::string group = control_group();; group.resize(group.find_last_of('/'))) {
        std::ifstream file("/sys/fs/cgroup" + group + "/cpu.max");
        double quota = 0, period = 0;  // "max 100000" leaves quota unread
        if (file >> quota >> period && quota > 0 && period > 0) {
            const unsigned cores = std::max(1u, unsigned(quota / period + 0.5));
            least = least == 0 ? cores : std::min(least, cores);
        }
        if (group.find('/') == std::string::npos) return least;
    }
}

}  // namespace

unsigned usable_cores() {
    const unsigned cores = std::clamp(cores_in_mask(), 1u, Team::max_threads);
    const unsigned quota = cores_by_quota();
    return quota == 0 ? cores : std::min(cores, quota);
}

}  // namespace tenon::cpu
