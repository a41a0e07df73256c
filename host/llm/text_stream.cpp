#include "llm/text_stream.h"

#include <algorithm>

#include "llm/tokenizer/utf8.h"

namespace tenon::llm {

TextStream::TextStream(std::vector<std::string> stops, size_t piece_bytes) {
    size_t longest = 0;
    for (const std::string &stop : stops) {
        if (stop.empty()) continue;
        Stop &added = stops_.emplace_back();
        // The text has no invalid bytes, so that a stop string with one means what such bytes are shown as.
        added.text = utf8_replace_invalid(stop);
        added.fallback.resize(added.text.size());
        for (size_t i = 1, border = 0; i < added.text.size(); ++i) {
            while (border > 0 && added.text[i] != added.text[border]) border = added.fallback[border - 1];
            if (added.text[i] == added.text[border]) ++border;
            added.fallback[i] = border;
        }
        longest = std::max(longest, added.text.size());
    }
    undecoded_.reserve(piece_bytes + 4);
    // A piece of invalid bytes grows to a U+FFFD each; so does the beginning of a character before it.
    text_.reserve(longest + (piece_bytes + 4) * k_replacement.size());
}

std::string_view TextStream::push(std::string_view bytes) {
    text_.erase(0, shown_);
    shown_ = 0;
    if (stopped_ || finished_) return {};
    undecoded_ += bytes;
    std::string_view rest = undecoded_;
    while (!rest.empty() && !stopped_) {
        const Utf8Head head = utf8_head(rest);
        if (head.kind == Utf8Head::incomplete) break;
        take(head.kind == Utf8Head::character ? rest.substr(0, head.bytes) : k_replacement);
        rest.remove_prefix(head.bytes);
    }
    undecoded_.erase(0, undecoded_.size() - rest.size());
    size_t held_back = 0;
    for (const Stop &stop : stops_) held_back = std::max(held_back, stop.matched);
    return release(stopped_ ? 0 : held_back);
}

std::string_view TextStream::finish() {
    text_.erase(0, shown_);
    shown_ = 0;
    if (stopped_ || finished_) return {};
    finished_ = true;
    if (!undecoded_.empty()) take(k_replacement);
    return release(0);
}

void TextStream::take(std::string_view character) {
    for (char byte : character) {
        text_ += byte;
        size_t completed = 0;
        for (Stop &stop : stops_) {
            advance(stop, byte);
            if (stop.matched == stop.text.size()) completed = std::max(completed, stop.matched);
        }
        if (completed == 0) continue;
        text_.resize(text_.size() - completed);
        stopped_ = true;
        return;
    }
}

void TextStream::advance(Stop &stop, char byte) {
    while (stop.matched > 0 && stop.text[stop.matched] != byte) stop.matched = stop.fallback[stop.matched - 1];
    if (stop.text[stop.matched] == byte) ++stop.matched;
}

std::string_view TextStream::release(size_t held_back) {
    shown_ = text_.size() - held_back;
    return std::string_view(text_).substr(0, shown_);
}

}  // namespace tenon::llm
