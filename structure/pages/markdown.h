// The few forms of Markdown that the generated pages use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graphproof::structure {

/// The first lines of a generated page: its title, what it lists, and where that is changed.
std::string page_head(std::string_view title, std::string_view purpose, std::string_view source);

/// One row of a table; a | inside a cell is escaped.
std::string table_row(const std::vector<std::string>& cells);
/// The row of titles and the line below it.
std::string table_head(const std::vector<std::string>& titles);

/// `text` as code. Empty text stays empty.
std::string code(std::string_view text);
/// "sim, cuda"
std::string list_of(const std::vector<std::string>& words);

}  // namespace graphproof::structure
