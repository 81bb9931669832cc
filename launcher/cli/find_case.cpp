#include "launcher/cli/find_case.h"

#include <vector>

#include "launcher/run/run_folder.h"
#include "matrix/input/input_error.h"
#include "reports/record/text/file.h"

namespace graphproof::cli {

namespace fs = std::filesystem;

FoundCase find_case(const std::string& reference, const Surroundings& surroundings) {
  const matrix::AxisTable& axes = surroundings.catalogue.axes;
  const launcher::CaseReference parts = launcher::split_reference(reference);
  FoundCase found;
  const std::vector<std::string> known_runs = launcher::run_ids(surroundings.runs);
  if (parts.run || !known_runs.empty()) {
    const fs::path run = launcher::find_run(surroundings.runs, parts.run.value_or("latest"));
    const auto plan = record::plan_from(record::read_text(run / "plan.jsonl"), run / "plan.jsonl");
    std::vector<matrix::KnownCase> known;
    for (const record::PlanLine& line : plan) known.push_back({line.id, line.name});
    try {
      found.line = plan.at(matrix::resolve_case(parts.case_text, known));
      found.run = run;
      found.test_case = matrix::case_from_json(axes, found.line->axes, run / "plan.jsonl");
      return found;
    } catch (const matrix::InputError&) {
      // A name has a meaning without a run. Anything else has to be a case of the run.
      const bool name =
          parts.case_text.find('=') != std::string::npos || parts.case_text == "default";
      if (parts.run || !name) throw;
    }
  }
  found.test_case = matrix::case_from_name(axes, parts.case_text, "CASE");
  return found;
}

}  // namespace graphproof::cli
