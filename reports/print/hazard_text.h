// The hazards of a run as text, for the terminal and for summary.md.
#pragma once

#include <string>

#include "reports/print/terminal.h"
#include "reports/record/run/hazards.h"

namespace graphproof::reports {

/// The hazards that occurred, with ranks, collective and cure; then how well the rule of each
/// dialect predicted them. Empty if there are no cells.
std::string hazard_text(const record::Hazards& hazards, const TerminalStyle& style);
/// The same as a section of summary.md, with a table of all cells.
std::string hazard_markdown(const record::Hazards& hazards);

}  // namespace graphproof::reports
