// summary.md: a page for a pull request or the summary of a CI job. Failures come first, each with
// the five parts of its message and the command that runs the case again; what is of interest only
// when all is well, as the benefit of graphs, comes last.
#pragma once

#include <string>

#include "reports/outcome/run_result.h"
#include "reports/print/markdown_parts.h"

namespace graphproof::reports {

/// GitHub takes no longer comment on a pull request than 65,536 characters.
inline constexpr std::size_t kMarkdownLimit = 65'000;

/// The whole page, at most kMarkdownLimit bytes: sections that do not fit are named and left out.
/// `hazards`: the section of hazard_markdown(), which comes after the failures; may be empty.
std::string markdown(const RunResult& run, const std::string& hazards = "");

}  // namespace graphproof::reports
