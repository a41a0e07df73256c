// From the pieces of tokens to text that can be shown: a token may end within a character, and within what could become
// a stop string; such an end is held back until it is known what it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::llm {

/// One generation's output. One thread. What comes out depends on the bytes that went in only, not on how they were
/// divided into pieces.
class TextStream {
public:
    /// Text ends before the first of `stops` that is completed (if two are completed by the same byte, before the
    /// longer one). Stops are text; empty ones are ignored. No push() of up to `piece_bytes` allocates.
    explicit TextStream(std::vector<std::string> stops = {}, size_t piece_bytes = 512);

    /// Takes a token's bytes and answers the text that can be shown now, well-formed UTF-8, valid until the next call.
    /// Bytes that no character contains are U+FFFD (one for each maximal invalid subpart) as soon as that is certain.
    /// After a stop string, and after finish(), nothing comes any more.
    std::string_view push(std::string_view bytes);

    /// The generation is over: answers what was held back. An unfinished character becomes U+FFFD.
    std::string_view finish();

    /// Whether a stop string was met.
    bool stopped() const { return stopped_; }

private:
    /// How far one stop string is matched by the end of the text (Knuth, Morris, Pratt 1977).
    struct Stop {
        std::string text;
        std::vector<size_t> fallback;  // longest proper border of each prefix
        size_t matched = 0;
    };

    void take(std::string_view character);
    void advance(Stop &stop, char byte);
    std::string_view release(size_t held_back);

    std::vector<Stop> stops_;
    std::string undecoded_;  // the beginning of a character
    std::string text_;       // decoded; the first `shown_` bytes were given out by the last call
    size_t shown_ = 0;
    bool stopped_ = false, finished_ = false;
};

}  // namespace tenon::llm
