// The hazards of a run: for each case what happened, which ranks hung in which collective, whether
// the cure works, and whether the rule of each upstream dialect predicts it. Verdicts come from
// outcome.h; reports/print prints.
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

/// The files of the attempt that a record belongs to, as far as they exist.
struct AttemptFacts {
  std::optional<record::Context> context;
  std::optional<record::Checks> checks;
};
using FactsOf = std::function<AttemptFacts(const record::Record&)>;

/// Whether the plan of the run has a case that is expected to be hazardous.
bool has_hazards(const RunResult& run);

/// One cell for each such case, in plan order. A case of an old run whose hazard is not in the
/// table of this version is left out.
record::Hazards hazards(const RunResult& run, const matrix::Catalogue& catalogue,
                        const FactsOf& facts_of);
/// The same; reads the files of the attempts in a run folder.
record::Hazards read_hazards(const RunResult& run, const matrix::Catalogue& catalogue,
                             const std::filesystem::path& run_folder);

/// Whether the hazard occurred, that is, the product failed; absent if the case gave no result.
std::optional<bool> bites(const record::HazardCell& cell);

}  // namespace graphproof::reports
