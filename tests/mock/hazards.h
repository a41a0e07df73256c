// Whose bytes lie where: a shadow of each buffer with one tag for four bytes of memory. A tag names the base value whose
// bytes were last written there and the run that did it, so that a read of anything else (a value that isn't there yet,
// that something else overwrote, that an earlier run left behind) is found where it happens, whatever the numbers are.
//
// Tags are atomics, relaxed: they order nothing, so that a missing wait is still a data race for the thread sanitizer.
#ifndef TENON_TESTS_MOCK_HAZARDS_H
#define TENON_TESTS_MOCK_HAZARDS_H

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tenon/plugin.hpp"

namespace mock {

using tenon::plugin::ValueView;

/// Numbers for names, the same in all devices of an instance, since values are copied between them. Any thread.
class Names {
public:
    static constexpr uint32_t kNothing = 0, kCleared = 1;  // memory as allocated; a buffer that was cleared

    uint32_t id(std::string_view name);  // one for one text
    uint32_t add(std::string text);      // one of its own, whatever the text
    std::string text(uint32_t id) const;

private:
    mutable std::mutex mutex_;
    std::unordered_map<std::string, uint32_t> ids_;
    std::vector<std::string> texts_{"nothing", "cleared memory"};
};

/// What lies in four bytes: a base value, and the run that wrote it (0: the host, or a run without a token).
struct Tag {
    uint32_t name = Names::kNothing, token = 0;
};

/// What a reader must find.
struct Expected {
    Tag tag;
    bool lasts = false;             // a weight or state: written before this run, rightly
    bool outside = false;           // no node makes it: clearing the buffer was enough
    bool may_be_unwritten = false;  // a state: what it holds at first is the application's affair

    bool fits(Tag found) const {
        if (found.name == Names::kNothing) return may_be_unwritten;
        if (found.name == Names::kCleared) return outside;
        return found.name == tag.name && !is_stale(found);
    }
    bool is_stale(Tag found) const { return !lasts && tag.token != 0 && found.token != 0 && found.token != tag.token; }
};

struct Hazard {
    uint64_t at;  // byte of the buffer
    Tag found;
};

class Shadow {
public:
    explicit Shadow(uint64_t bytes);

    Tag at(uint64_t byte) const;
    /// Bytes [begin, begin + bytes) of the buffer.
    void write(uint64_t begin, uint64_t bytes, Tag tag);
    std::optional<Hazard> find(uint64_t begin, uint64_t bytes, const Expected &expected) const;
    /// Canonical bytes [offset, offset + bytes) of a tensor whose element 0 lies at byte `at`.
    void write(const ValueView &tensor, uint64_t at, uint64_t offset, uint64_t bytes, Tag tag);
    std::optional<Hazard> find(const ValueView &tensor, uint64_t at, uint64_t offset, uint64_t bytes,
                               const Expected &expected) const;
    /// All bytes of a tensor, those that a broadcast reads again once.
    void write(const ValueView &tensor, uint64_t at, Tag tag);
    std::optional<Hazard> find(const ValueView &tensor, uint64_t at, const Expected &expected) const;

private:
    static constexpr uint64_t kGranule = 4;  // bytes
    struct Cell {
        std::atomic<uint32_t> name{Names::kNothing}, token{0};
    };
    std::unique_ptr<Cell[]> cells_;
};

/// A cancel token as tags keep it.
constexpr uint32_t short_token(uint64_t token) {
    return static_cast<uint32_t>(token ^ (token >> 32));
}

/// Throws "hazard: <who> reads '<value>' at byte ... of <where>, ...".
[[noreturn]] void report(const Names &names, const Hazard &hazard, const Expected &expected, const std::string &who,
                         std::string_view value, std::string_view where);

}  // namespace mock
#endif
