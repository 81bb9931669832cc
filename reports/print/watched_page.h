// page.html of a watched run: the same as report.md in a page that a browser shows, with the whole
// stack and the kernels of each graph. It is one file, loads nothing and has no script.
#pragma once

#include <string>

#include "reports/print/watched_report.h"

namespace graphproof::reports {

std::string watched_page(const WatchedReport& report);

/// `text` safe for the inside of an element of HTML.
std::string html_text(const std::string& text);

}  // namespace graphproof::reports
