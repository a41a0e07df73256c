// A regular expression that is searched in names: PCRE2 behind a small value.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tenon/status.h"

namespace tenon {

class Pattern {
public:
    /// invalid_argument says what is wrong and at which character.
    static Result<Pattern> compile(const std::string &text);
    /// Whether some part of `subject` matches. Fails where the search gives up: invalid_argument where the expression
    /// takes too many steps on this subject, out_of_memory. Any thread.
    Result<bool> found_in(std::string_view subject) const;

private:
    std::string text_;
    std::shared_ptr<const void> code_;
};

}  // namespace tenon
