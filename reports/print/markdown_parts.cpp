#include "reports/print/markdown_parts.h"

#include <algorithm>
#include <string_view>

#include "reports/record/text/printable.h"

namespace graphproof::reports {

std::string markdown_text(const std::string& text) {
  std::string result;
  for (const char c : record::printable(text)) {
    if (std::string_view("\\`*_|<>[]#").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_code(const std::string& text) {
  std::string result = record::printable(text);
  std::replace(result.begin(), result.end(), '`', '\'');
  // In a table a bar ends the cell even inside code.
  for (std::size_t i = result.find('|'); i != std::string::npos; i = result.find('|', i + 2))
    result.insert(i, "\\");
  return "`" + result + "`";
}

std::string markdown_row(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& one : cells) line += " " + one + " |";
  return line + "\n";
}

std::string markdown_header(const std::vector<std::string>& names) {
  return markdown_row(names) + markdown_row(std::vector<std::string>(names.size(), "---"));
}

std::string markdown_failing(const record::Failing& one) {
  std::string text;
  const std::string who =
      one.check +
      (one.rank ? (one.check.empty() ? "rank " : " on rank ") + std::to_string(*one.rank) : "");
  text += "- " + (who.empty() ? "" : "**" + markdown_text(who) + "**: ") +
          markdown_text(one.message.what) + "\n";
  const auto part = [&text](const char* label, const std::string& value) {
    if (!value.empty()) text += std::string("  - ") + label + ": " + markdown_text(value) + "\n";
  };
  part("got", one.message.got);
  part("want", one.message.want);
  part("why", one.message.why);
  if (!one.message.next.empty()) text += "  - next: " + markdown_code(one.message.next) + "\n";
  return text;
}

}  // namespace graphproof::reports
