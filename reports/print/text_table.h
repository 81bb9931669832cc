// Tables and colours of what is printed to a terminal. The texts of cells pass record::printable()
// first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace graphproof::reports {

/// How text is laid out.
struct TerminalStyle {
  bool colour = false;
  int columns = 100;  // lines are cut to this width
};

enum class Colour { red, yellow, green, dim };
/// `text` in the colour, if the style has colours.
std::string paint(const std::string& text, Colour colour, const TerminalStyle& style);

/// `text` cut to this many columns, with "~" in place of what is missing.
std::string cut(const std::string& text, std::size_t columns);

struct Cell {
  std::string text;
  std::optional<Colour> colour;
};

/// A table whose columns are as wide as their widest cells. The last column is cut at the width of
/// `style`.
std::string table(const std::vector<std::vector<Cell>>& rows, const TerminalStyle& style,
                  const std::string& indent);

}  // namespace graphproof::reports
