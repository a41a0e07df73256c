// A schedule in the DOT language (graphviz.org/doc/info/lang.html).
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>

#include "sched/schedule_print.h"

namespace tenon {
namespace {

/// Bytes that a UTF-8 sequence takes; 0 where none begins or one is cut off.
size_t sequence_bytes(std::string_view text) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    const size_t length = byte(0) < 0x80 ? 1 : byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc2 ? 2 : 0;
    if (length == 0 || length > text.size() || byte(0) > 0xf4) return 0;
    for (size_t i = 1; i < length; ++i)
        if ((byte(i) & 0xc0) != 0x80) return 0;
    return length;
}

/// A quoted DOT string.
std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : printable(text)) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out + '"';
}

/// Hues far apart for any number of devices: steps of the golden ratio.
std::string colour(uint32_t device, double saturation) {
    return fmt::format("{:.3f} {:.2f} 0.95", std::fmod(0.58 + 0.618034 * device, 1.0), saturation);
}

class Dot {
public:
    explicit Dot(const Schedule &schedule)
        : schedule_(schedule), graph_(schedule.graph()), out_(std::back_inserter(text_)) {}

    std::string run() {
        fmt::format_to(out_,
                       "digraph schedule {{\n  rankdir=TB; node [shape=box style=filled fillcolor=white "
                       "fontname=Helvetica]; fontname=Helvetica;\n");
        maker_.assign(graph_.values().size(), k_no_value);
        drawn_in_.assign(graph_.values().size(), nullptr);
        for (size_t s = 0; s < schedule_.segments().size(); ++s) segment(s);
        leaves();
        for (size_t s = 0; s < schedule_.segments().size(); ++s) edges(schedule_.segments()[s]);
        text_ += "}\n";
        return std::move(text_);
    }

private:
    void segment(size_t number) {
        const Segment &of = schedule_.segments()[number];
        fmt::format_to(out_, "  subgraph cluster_{} {{\n    style=filled; color={}; fillcolor={}; label={};\n", number,
                       quoted(colour(of.device, 0.8)), quoted(colour(of.device, 0.2)),
                       quoted(fmt::format("segment {} on {}", number, device_name(schedule_, of.device))));
        for (NodeId id : of.nodes()) {
            const Node &node = graph_.nodes()[id];
            fmt::format_to(out_, "    n{} [label={}];\n", id,
                           quoted(fmt::format("{} | {} | {}", std::string_view(node.name), graph_.op(node).name,
                                              reason_code(schedule_.nodes()[id].reason))));
        }
        for (uint32_t i : of.copies()) {
            const Copy &copy = schedule_.copies()[i];
            fmt::format_to(out_, "    c{} [shape=ellipse style=dashed label={}];\n", i,
                           quoted(fmt::format("{} | {} bytes | {}", std::string_view(graph_.values()[copy.value].name),
                                              copy.bytes, reason_code(Reason::cpy))));
        }
        text_ += "  }\n";
    }

    /// Inputs and states; weights only where they are carried, since each node has its own.
    void leaves() {
        std::vector<bool> carried(graph_.values().size());
        for (const Copy &copy : schedule_.copies()) carried[copy.value] = true;
        is_shown_.assign(graph_.values().size(), false);
        for (ValueId id : graph_.leaves()) {
            const Value &value = graph_.values()[id];
            if ((value.flags & TN_VALUE_WEIGHT) && !carried[id]) continue;
            is_shown_[id] = true;
            const Assignment &at = schedule_.values()[id];
            fmt::format_to(out_, "  v{} [shape=ellipse fillcolor={} label={}];\n", id,
                           quoted(at.device == k_no_value ? "white" : colour(at.device, 0.2)),
                           quoted(fmt::format("{} | {} | {}", std::string_view(value.name),
                                              device_name(schedule_, at.device), reason_code(at.reason))));
        }
    }

    /// Where a base comes from: the node that wrote it last, or the leaf itself. Empty where that isn't drawn.
    std::string origin(ValueId base) const {
        if (maker_[base] != k_no_value) return fmt::format("n{}", maker_[base]);
        return is_shown_[base] ? fmt::format("v{}", base) : "";
    }

    /// What comes from outside a segment is drawn to its first reader there: positions, which each layer reads, would
    /// cross the whole drawing, and laying that out takes minutes.
    void edges(const Segment &of) {
        for (uint32_t i : of.copies()) {
            const Copy &copy = schedule_.copies()[i];
            if (const std::string from = origin(copy.value); !from.empty())
                fmt::format_to(out_, "  {} -> c{} [style=dashed label={}];\n", from, i,
                               quoted(fmt::format("{} bytes", copy.bytes)));
            copy_to_[{copy.value, copy.to}] = i;
        }
        for (NodeId id : of.nodes()) {
            const Node &node = graph_.nodes()[id];
            for (ValueId input : node.inputs) {
                if (input == k_no_value) continue;
                const ValueId base = graph_.base(input);
                const auto copy = copy_to_.find({base, of.device});
                const bool is_leaf = copy == copy_to_.end() && maker_[base] == k_no_value;
                if (is_leaf || copy != copy_to_.end()) {
                    if (drawn_in_[base] == &of) continue;
                    drawn_in_[base] = &of;
                }
                const std::string from = copy == copy_to_.end() ? origin(base) : fmt::format("c{}", copy->second);
                if (!from.empty()) fmt::format_to(out_, "  {} -> n{};\n", from, id);
            }
            for (ValueId output : node.outputs) maker_[graph_.base(output)] = id;
        }
    }

    const Schedule &schedule_;
    const Graph &graph_;
    std::string text_;
    std::back_insert_iterator<std::string> out_;
    std::vector<NodeId> maker_;  // per base: who wrote it last, as far as the edges have been drawn
    std::vector<bool> is_shown_;
    std::vector<const Segment *> drawn_in_;  // per base: the segment to which it was drawn last
    std::map<std::pair<ValueId, uint32_t>, uint32_t> copy_to_;
};

}  // namespace

std::string printable(std::string_view name) {
    std::string out;
    while (!name.empty()) {
        const size_t bytes = sequence_bytes(name);
        const bool plain = bytes > 1 || (bytes == 1 && name[0] >= ' ' && name[0] != 0x7f);
        out += plain ? name.substr(0, bytes) : "?";
        name.remove_prefix(std::max<size_t>(1, bytes));
    }
    return out;
}

std::string Schedule::to_dot() const {
    return Dot(*this).run();
}

}  // namespace tenon
