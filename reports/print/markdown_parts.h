// What the Markdown pages are made of: escaped text, code, rows of tables, failing checks.
#pragma once

#include <string>
#include <vector>

#include "reports/record/run/record.h"

namespace graphproof::reports {

/// `text` escaped for a line or a table cell of Markdown.
std::string markdown_text(const std::string& text);
/// Text as code. A backtick cannot be escaped inside, so it is replaced.
std::string markdown_code(const std::string& text);

/// A row of a table, and the first row with the line below it. Cells are Markdown already.
std::string markdown_row(const std::vector<std::string>& cells);
std::string markdown_header(const std::vector<std::string>& names);

/// A failing check as an item of a list, with the five parts of its message.
std::string markdown_failing(const record::Failing& one);

}  // namespace graphproof::reports
