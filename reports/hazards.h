// What a run showed about hazards: every cell with what happened, the hung ranks and their last
// collective, the cure and whether it holds, and whether the rule of each upstream dialect agrees.
// Judging is reports/outcome's; this tells.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "matrix/catalogue.h"
#include "reports/record/checks.h"
#include "reports/record/context.h"
#include "reports/record/hazards.h"
#include "reports/run_result.h"
#include "reports/terminal.h"

namespace graphproof::reports {

/// The files of the attempt that a record is of; nothing where there is none.
struct AttemptFacts {
  std::optional<record::Context> context;
  std::optional<record::Checks> checks;
};
using FactsOf = std::function<AttemptFacts(const record::Record&)>;

/// Whether any case of the run has a hazard's expectation.
bool has_hazards(const RunResult& run);

/// One cell for each such case, in plan order. A case that is in no table any more (an old run) is
/// left out.
record::Hazards hazards(const RunResult& run, const matrix::Catalogue& catalogue,
                        const FactsOf& facts_of);
/// The same from a run folder.
record::Hazards read_hazards(const RunResult& run, const matrix::Catalogue& catalogue,
                             const std::filesystem::path& run_folder);

/// Whether the stack failed there: true or false where the cell showed it, nothing where it did not
/// run.
std::optional<bool> bites(const record::HazardCell& cell);

/// What bit, with ranks, collective and cure; then how each dialect's rule did. "" without cells.
std::string hazard_text(const record::Hazards& hazards, const TerminalStyle& style);
/// The same as a section of summary.md, with every cell.
std::string hazard_markdown(const record::Hazards& hazards);

}  // namespace graphproof::reports
