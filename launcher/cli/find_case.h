// The case that a command line names.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "launcher/cli/verb.h"
#include "matrix/case/case.h"
#include "reports/record/job/plan.h"

namespace graphproof::cli {

/// A recorded case, or a case that is known only by its name.
struct FoundCase {
  std::optional<std::filesystem::path> run;  // the folder of the run that recorded it
  std::optional<record::PlanLine> line;      // its line in the plan of that run
  matrix::Case test_case;
};
/// The case that a user means by CASE: an id prefix or a name, in RUN or in the latest run; or the
/// name of any case. Throws InputError with the candidates if it is ambiguous.
FoundCase find_case(const std::string& reference, const Surroundings& surroundings);

}  // namespace graphproof::cli
