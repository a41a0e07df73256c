#include "cmd/support/nearest.h"

#include <algorithm>
#include <vector>

namespace tenon::cmd {

size_t edit_distance(std::string_view a, std::string_view b) {
    // Row i of the usual table holds the distances of a's first i characters to every prefix of b; a swap of neighbours
    // looks two rows back.
    std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        before.swap(above);
        above.swap(row);
        row[0] = i;
        for (size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.size()];
}

std::string_view nearest(std::string_view typed, std::span<const std::string_view> names) {
    constexpr size_t k_longest = 64;  // nobody mistypes more than that; keeps the table small
    if (typed.empty() || typed.size() > k_longest) return {};
    std::string_view best;
    size_t least = std::max<size_t>(1, typed.size() / 3) + 1;
    for (std::string_view name : names) {
        const size_t distance = name.starts_with(typed) ? 0 : edit_distance(typed, name);
        if (distance < least) {
            least = distance;
            best = name;
        }
    }
    return best;
}

std::string suggestion(std::string_view typed, std::span<const std::string_view> names) {
    const std::string_view name = nearest(typed, names);
    return name.empty() ? std::string() : "; did you mean '" + std::string(name) + "'?";
}

}  // namespace tenon::cmd
