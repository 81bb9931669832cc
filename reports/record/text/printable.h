// Makes text that came from outside (ranks, libraries, the environment) harmless for a terminal,
// XML and Markdown.
#pragma once

#include <string>
#include <string_view>

namespace graphproof::record {

/// Replaces control characters (C0 including newline and tab, DEL, C1), bytes that are not UTF-8,
/// and the two code points that XML forbids by \xNN, byte by byte.
std::string printable(std::string_view text);

/// `value` with `digits` digits after the decimal point.
std::string fixed(double value, int digits);

}  // namespace graphproof::record
