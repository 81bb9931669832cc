// The hazards that a run showed, for the terminal and for summary.md.
#pragma once

#include <string>

#include "reports/print/terminal.h"
#include "reports/record/run/hazards.h"

namespace graphproof::reports {

/// What bit, with ranks, collective and cure; then how each dialect's rule did. "" without cells.
std::string hazard_text(const record::Hazards& hazards, const TerminalStyle& style);
/// The same as a section of summary.md, with every cell.
std::string hazard_markdown(const record::Hazards& hazards);

}  // namespace graphproof::reports
