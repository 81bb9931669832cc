// summary.md: a page for a pull request or the summary of a CI job. It begins with what the first
// screen of report.html says (overview.h). Then come the failures one by one, each with the five
// parts of its message and the command that runs the case again; what is of interest only when all
// is well, as the benefit of graphs, comes last.
#pragma once

#include <string>

#include "reports/outcome/run_result.h"
#include "reports/print/markdown_parts.h"
#include "reports/print/overview.h"

namespace graphproof::reports {

/// GitHub takes no longer comment on a pull request than 65,536 characters.
inline constexpr std::size_t kMarkdownLimit = 65'000;

/// The whole page, at most kMarkdownLimit bytes: sections that do not fit are named and left out.
/// `words`: of the same run. `hazards`: the section of hazard_markdown(), which comes after the
/// failures; may be empty.
std::string markdown(const RunResult& run, const Overview& words, const std::string& hazards = "");

}  // namespace graphproof::reports
