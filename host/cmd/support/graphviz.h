// Drawings by Graphviz.
#pragma once

#include <string>
#include <string_view>

#include "tenon/status.h"

namespace tenon::cmd {

/// A graph in the DOT language as SVG, laid out by the program `dot`, which is looked for in PATH. not_found: there is
/// none; internal: what it says on stderr. Blocks until it has ended.
Result<std::string> render_svg(std::string_view dot);

}  // namespace tenon::cmd
