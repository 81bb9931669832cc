// Text that came from outside (ranks, libraries, environment) made harmless for a terminal, XML and
// Markdown.
#pragma once

#include <string>
#include <string_view>

namespace graphproof::record {

/// Control characters (C0 with newline and tab, DEL, C1), bytes that are no UTF-8, and the two code
/// points that XML forbids become \xNN, byte by byte; everything else stays.
std::string printable(std::string_view text);

/// `value` with `digits` digits after the point.
std::string fixed(double value, int digits);

}  // namespace graphproof::record
