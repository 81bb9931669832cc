// What a run showed about hazards: every cell with what happened, the hung ranks and their last
// collective, the cure and whether it holds, and whether the rule of each upstream dialect agrees.
// Judging is the outcome's; printing is reports/print's.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "matrix/catalogue/catalogue.h"
#include "reports/outcome/run_result.h"
#include "reports/record/job/context.h"
#include "reports/record/run/checks.h"
#include "reports/record/run/hazards.h"

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

}  // namespace graphproof::reports
