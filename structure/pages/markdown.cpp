#include "structure/pages/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace graphproof::structure {

std::string page_head(std::string_view title, std::string_view purpose, std::string_view source) {
  return fmt::format("# {}\n\n{}\nGenerated from {}; change it there.\n", title, purpose, source);
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += ' ';
    for (const char letter : cell) row += letter == '|' ? "\\|" : std::string(1, letter);
    row += " |";
  }
  return row + "\n";
}

std::string table_head(const std::vector<std::string>& titles) {
  std::string line = "|";
  for (std::size_t i = 0; i < titles.size(); ++i) line += " --- |";
  return table_row(titles) + line + "\n";
}

std::string code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", text); }

std::string list_of(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace graphproof::structure
