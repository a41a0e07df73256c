#include "hazards.h"

namespace mock {

using tenon::plugin::for_each_piece;
using tenon::plugin::join;

uint32_t Names::id(std::string_view name) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = ids_.try_emplace(std::string(name), static_cast<uint32_t>(texts_.size()));
    if (is_new) texts_.emplace_back(name);
    return at->second;
}

uint32_t Names::add(std::string text) {
    const std::lock_guard lock(mutex_);
    texts_.push_back(std::move(text));
    return static_cast<uint32_t>(texts_.size() - 1);
}

std::string Names::text(uint32_t id) const {
    const std::lock_guard lock(mutex_);
    return texts_[id];
}

namespace {

/// The tensor without what it reads twice.
ValueView without_broadcast(ValueView tensor) {
    for (uint32_t i = 0; i < tensor.rank; ++i) {
        if (tensor.stride[i] == 0 && tensor.shape[i] > 1) tensor.shape[i] = 1;
    }
    return tensor;
}

}  // namespace

Shadow::Shadow(uint64_t bytes) : cells_(std::make_unique<Cell[]>(bytes / kGranule + 1)) {}

Tag Shadow::at(uint64_t byte) const {
    const Cell &cell = cells_[byte / kGranule];
    return {cell.name.load(std::memory_order_relaxed), cell.token.load(std::memory_order_relaxed)};
}

void Shadow::write(uint64_t begin, uint64_t bytes, Tag tag) {
    if (bytes == 0) return;
    for (uint64_t i = begin / kGranule; i <= (begin + bytes - 1) / kGranule; ++i) {
        cells_[i].name.store(tag.name, std::memory_order_relaxed);
        cells_[i].token.store(tag.token, std::memory_order_relaxed);
    }
}

std::optional<Hazard> Shadow::find(uint64_t begin, uint64_t bytes, const Expected &expected) const {
    if (bytes == 0) return std::nullopt;
    for (uint64_t i = begin / kGranule; i <= (begin + bytes - 1) / kGranule; ++i) {
        const Tag found = at(i * kGranule);
        if (!expected.fits(found)) return Hazard{std::max(begin, i * kGranule), found};
    }
    return std::nullopt;
}

void Shadow::write(const ValueView &tensor, uint64_t at, uint64_t offset, uint64_t bytes, Tag tag) {
    for_each_piece(tensor, offset, bytes, [&](uint64_t piece, uint64_t, uint64_t n) { write(at + piece, n, tag); });
}

std::optional<Hazard> Shadow::find(const ValueView &tensor, uint64_t at, uint64_t offset, uint64_t bytes,
                                   const Expected &expected) const {
    std::optional<Hazard> hazard;
    for_each_piece(tensor, offset, bytes, [&](uint64_t piece, uint64_t, uint64_t n) {
        if (!hazard) hazard = find(at + piece, n, expected);
    });
    return hazard;
}

void Shadow::write(const ValueView &tensor, uint64_t at, Tag tag) {
    const ValueView distinct = without_broadcast(tensor);
    write(distinct, at, 0, distinct.bytes(), tag);
}

std::optional<Hazard> Shadow::find(const ValueView &tensor, uint64_t at, const Expected &expected) const {
    const ValueView distinct = without_broadcast(tensor);
    return find(distinct, at, 0, distinct.bytes(), expected);
}

void report(const Names &names, const Hazard &hazard, const Expected &expected, const std::string &who,
            std::string_view value, std::string_view where) {
    std::string what = join("where '", names.text(hazard.found.name), "' lies");
    if (hazard.found.name == Names::kNothing) what = "which is not yet written";
    if (hazard.found.name == Names::kCleared) what = "which was cleared but is not yet written";
    const bool earlier = hazard.found.token < expected.tag.token;
    if (hazard.found.name == expected.tag.name)
        what = earlier ? "which is of an earlier run" : "which is of a later run";
    tenon::plugin::fail(TN_INTERNAL, "hazard: ", who, " reads '", value, "' at byte ", hazard.at, " of ", where, ", ",
                        what);
}

}  // namespace mock
