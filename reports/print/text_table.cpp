#include "reports/print/text_table.h"

#include <algorithm>

namespace graphproof::reports {
namespace {

/// The columns of printable text: one for each code point, because our texts have no wide ones.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string pad(const std::string& text, std::size_t columns) {
  return text + std::string(columns > width(text) ? columns - width(text) : 0, ' ');
}

}  // namespace

std::string paint(const std::string& text, Colour colour, const TerminalStyle& style) {
  constexpr const char* kStart[] = {"\033[31m", "\033[33m", "\033[32m", "\033[2m"};
  return style.colour ? kStart[static_cast<int>(colour)] + text + "\033[0m" : text;
}

std::string cut(const std::string& text, std::size_t columns) {
  if (width(text) <= columns) return text;
  std::size_t bytes = 0, seen = 0;
  // One column is left for the mark.
  while (bytes < text.size() && seen + 1 < std::max<std::size_t>(columns, 1)) {
    ++bytes;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xc0) == 0x80) ++bytes;
    ++seen;
  }
  return text.substr(0, bytes) + "~";
}

std::string table(const std::vector<std::vector<Cell>>& rows, const TerminalStyle& style,
                  const std::string& indent) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (widths.size() <= i) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i].text));
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line = indent;
    std::size_t used = indent.size();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      const std::size_t columns = static_cast<std::size_t>(std::max(style.columns, 1));
      const std::size_t left = columns > used ? columns - used : 1;
      const std::string shown = last ? cut(row[i].text, left) : pad(row[i].text, widths[i]);
      line += row[i].colour ? paint(shown, *row[i].colour, style) : shown;
      if (!last) line += "  ";
      used += width(shown) + 2;
    }
    while (line.ends_with(' ')) line.pop_back();
    text += line + "\n";
  }
  return text;
}

}  // namespace graphproof::reports
