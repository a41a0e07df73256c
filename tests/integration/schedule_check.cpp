#include "schedule_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "memory_check.h"

namespace tenon::testing {
namespace {

/// A moment of a run: copies into a segment at 0, its group g at g + 1, what is shown of it behind them all.
struct Moment {
    uint32_t segment, time;
    bool operator==(const Moment &) const = default;
};

/// What takes bytes of an area.
struct Piece {
    std::string name;
    const Storage *storage = nullptr;
    uint64_t bytes = 0, offset = 0;
    std::vector<Moment> moments;
    bool always = false;  // before the run's start and after its end
};

class MemoryChecker {
public:
    explicit MemoryChecker(const Compiled &compiled) : of_(compiled), schedule_(compiled.schedule) {}

    std::string run() {
        know_order();
        collect();
        for (const auto &[key, list] : areas_) check_area(list);
        for (uint32_t d = 0; d < of_.devices.count(); ++d)
            for (auto kind : {Storage::Kind::arena, Storage::Kind::slot, Storage::Kind::constant})
                note(check_plan(of_.areas->intervals(kind, d), of_.areas->memory(kind, d),
                                of_.devices.types[d].info().max_bytes));
        return wrong_;
    }

private:
    void note(const std::string &what) {
        if (wrong_.empty()) wrong_ = what;
    }

    /// How many segments of each device have ended when a segment starts: its own queue, what it waits for, and what
    /// those waited for.
    void know_order() {
        const auto segments = schedule_.segments();
        const size_t devices = of_.devices.count();
        ended_.assign(segments.size(), std::vector<uint32_t>(devices));
        std::vector<uint32_t> last(devices, k_no_value), count(devices);
        for (uint32_t s = 0; s < segments.size(); ++s) {
            const uint32_t device = segments[s].device;
            auto after = [&](uint32_t other) {
                for (size_t d = 0; d < devices; ++d) ended_[s][d] = std::max(ended_[s][d], ended_[other][d]);
                uint32_t &own = ended_[s][segments[other].device];
                own = std::max(own, position_[other] + 1);
            };
            if (last[device] != k_no_value) after(last[device]);
            for (uint32_t i = segments[s].first_wait; i < segments[s].end_wait; ++i) after(schedule_.waits()[i]);
            position_.push_back(count[device]++);
            last[device] = s;
        }
    }

    bool before(Moment a, Moment b) const {
        if (a.segment == b.segment) return a.time < b.time;
        return ended_[b.segment][schedule_.segments()[a.segment].device] > position_[a.segment];
    }

    Piece &piece(uint32_t stored) { return pieces_[stored]; }

    void collect() {
        const Graph &graph = of_.graph();
        pieces_.resize(of_.stored.size());
        for (uint32_t i = 0; i < pieces_.size(); ++i) {
            const Stored &stored = of_.stored[i];
            pieces_[i].name = stored.name;
            pieces_[i].storage = &stored.storage;
            if (!stored.storage.in_area()) continue;
            const auto bytes =
                of_.devices.types[stored.storage.device].tensor_bytes(describe(stored.type, stored.shape, stored.name));
            pieces_[i].bytes = bytes.ok() ? *bytes : 0;
            if (!bytes.ok()) note(std::string(bytes.status().message()));
        }
        for (ValueId id : graph.inputs()) piece(of_.stored_of_value[id]).always = true;
        for (ValueId id : graph.outputs()) piece(of_.stored_of_value[id]).always = true;
        for (const auto &constant : of_.constants) piece(constant.stored).always = true;
        for (uint32_t s = 0; s < of_.segments.size(); ++s) collect_segment(s);
        for (Piece &scratch : scratch_) place(scratch);
        for (Piece &value : pieces_) place(value);
    }

    void collect_segment(uint32_t s) {
        const CompiledSegment &segment = of_.segments[s];
        const Segment &cut = schedule_.segments()[s];
        for (uint32_t copy : cut.copies()) {
            touch(of_.stored_of_value[schedule_.copies()[copy].value], {s, 0});
            touch(of_.stored_of_copy[copy], {s, 0});
        }
        const auto &groups = segment.plan->node_groups();
        std::vector<uint32_t> written_in(segment.values.size());
        for (size_t node = 0; node + 1 < segment.nodes.first_operand.size(); ++node)
            for (uint32_t i = segment.nodes.first_operand[node]; i < segment.nodes.first_operand[node + 1]; ++i) {
                const uint32_t local = segment.nodes.operands[i];
                written_in[local] = groups[node];  // outputs come last, and nobody reads before
                if (segment.values[local].stored != k_no_value)
                    touch(segment.values[local].stored, {s, groups[node] + 1});
            }
        const auto last = uint32_t(segment.scratch.size()) + 1;
        if (std::ranges::binary_search(schedule_.observed(), cut.end_node - 1))
            for (ValueId output : of_.graph().nodes()[cut.end_node - 1].outputs)
                touch(of_.stored_of_value[output], {s, last});
        for (uint32_t g = 0; g < segment.scratch.size(); ++g) {
            const uint64_t bytes = segment.plan->group_scratch()[g];
            scratch_.push_back({fmt::format("scratch of group {} of segment {}", g, s),
                                &segment.scratch[g],
                                bytes,
                                0,
                                {{s, g + 1}},
                                false});
        }
        for (auto [output, input] : segment.plan->in_place()) {
            const uint32_t to = segment.values[output].stored, from = segment.values[input].stored;
            if (to != k_no_value && from != k_no_value) offers_.insert({to, s, from});
        }
    }

    void touch(uint32_t stored, Moment at) {
        Piece &touched = piece(stored);
        if (touched.moments.empty() || touched.moments.back() != at) touched.moments.push_back(at);
        const Storage &storage = *touched.storage;
        if (storage.kind == Storage::Kind::arena && storage.device != schedule_.segments()[at.segment].device)
            note(
                fmt::format("'{}' lies in the arena of device {}, which runs share, but segment {} of another device "
                            "touches it",
                            touched.name, storage.device, at.segment));
    }

    void place(Piece &piece) {
        const Storage &storage = *piece.storage;
        if (!storage.in_area() || piece.bytes == 0) return;
        const MemoryPlace at = of_.areas->place(storage);
        piece.offset = at.offset;
        const auto &plan = of_.areas->memory(storage.kind, storage.device);
        const uint64_t alignment = of_.devices.types[storage.device].info().alignment;
        if (at.chunk >= plan.chunk_bytes.size() || at.offset + piece.bytes > plan.chunk_bytes[at.chunk])
            note(fmt::format("'{}' ends behind its chunk", piece.name));
        if (alignment && at.offset % alignment) note(fmt::format("'{}' isn't aligned", piece.name));
        areas_[{storage.device, int(storage.kind), at.chunk}].push_back(&piece);
    }

    void check_area(std::vector<const Piece *> list) {
        std::ranges::sort(list, {}, &Piece::offset);
        std::vector<const Piece *> open;
        for (const Piece *piece : list) {
            std::erase_if(open, [&](const Piece *other) { return other->offset + other->bytes <= piece->offset; });
            for (const Piece *other : open)
                if (!apart(*other, *piece) && !apart(*piece, *other))
                    note(fmt::format("{} and {} share bytes of device {} and may live at the same time", text(*other),
                                     text(*piece), piece->storage->device));
            open.push_back(piece);
        }
    }

    static std::string text(const Piece &piece) {
        std::string moments;
        for (Moment at : piece.moments) moments += fmt::format(" {}.{}", at.segment, at.time);
        return fmt::format("'{}' ([{}, {}){}{})", piece.name, piece.offset, piece.offset + piece.bytes,
                           piece.always ? ", always" : "", moments);
    }

    /// Whether all that is done to `early` has ended before anything is done to `late`; the last of one and the first of
    /// the other may meet in a group whose plan has offered to work in place.
    bool apart(const Piece &early, const Piece &late) const {
        if (early.always || late.always) return false;
        for (Moment a : early.moments)
            for (Moment b : late.moments)
                if (!before(a, b) && !(a == b && was_offered(early, late, a.segment))) return false;
        return true;
    }

    /// By one offer, or by several through values that lie at the same place: neg over x, abs over that.
    bool was_offered(const Piece &input, const Piece &output, uint32_t segment) const {
        std::vector<const Piece *> next{&output};
        std::set<const Piece *> seen;
        while (!next.empty()) {
            const Piece *piece = next.back();
            next.pop_back();
            if (piece == &input) return true;
            if (piece < pieces_.data() || piece >= pieces_.data() + pieces_.size()) continue;  // scratch
            if (piece->offset != output.offset || !seen.insert(piece).second) continue;
            const auto number = uint32_t(piece - pieces_.data());
            for (auto at = offers_.lower_bound({number, segment, 0});
                 at != offers_.end() && std::get<0>(*at) == number && std::get<1>(*at) == segment; ++at)
                next.push_back(&pieces_[std::get<2>(*at)]);
        }
        return false;
    }

    const Compiled &of_;
    const Schedule &schedule_;
    std::vector<std::vector<uint32_t>> ended_;
    std::vector<uint32_t> position_;
    std::vector<Piece> pieces_;  // per stored value
    std::vector<Piece> scratch_;
    std::set<std::tuple<uint32_t, uint32_t, uint32_t>> offers_;  // output, segment, input
    std::map<std::tuple<uint32_t, int, uint32_t>, std::vector<const Piece *>> areas_;
    std::string wrong_;
};

}  // namespace

std::string check_memory(const Compiled &compiled) {
    return MemoryChecker(compiled).run();
}

Status check_compiled(const Graph &graph, const std::vector<std::shared_ptr<Device>> &devices, const TensorMap &tensors,
                      std::span<const Pin> pins, uint32_t slots) {
    DeviceSet set{devices, {}};
    for (const auto &device : devices) set.types.push_back(device->default_buffer_type());
    TENON_ASSIGN(const BoundTypes bound, types_of(graph, tensors));
    TENON_ASSIGN(const auto pinned, resolve_pins(graph, devices, pins));
    TypeSupport types;
    TENON_ASSIGN(const auto compiled, compile(graph, {set, bound, pinned, {}, types, slots, true}));
    const std::string wrong = check_memory(*compiled);
    return wrong.empty() ? Status() : Status::internal(wrong);
}

}  // namespace tenon::testing
