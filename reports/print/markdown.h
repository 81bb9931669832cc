// summary.md: a page for a pull request or a job's summary. Failures first, each with its five
// parts and the command that reproduces it.
#pragma once

#include <string>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

std::string markdown(const RunResult& run);

/// `text` for a line or a table cell of Markdown: no markup is made or broken by it.
std::string markdown_text(const std::string& text);

}  // namespace graphproof::reports
