// Small static pages: a document without scripts that refers to no host. html_text()
// (watched_page.h) makes text safe inside it.
#pragma once

#include <string>
#include <vector>

namespace graphproof::reports {

/// A whole document. `body` is HTML; `title` is text.
std::string static_page(const std::string& title, const std::string& body);

/// A table. The cells of `header` are text, those of `rows` are HTML.
std::string html_table(const std::vector<std::string>& header,
                       const std::vector<std::vector<std::string>>& rows);

}  // namespace graphproof::reports
