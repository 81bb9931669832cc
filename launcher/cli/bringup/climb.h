// The steps by which a training job gets its CUDA graphs: eager is stable, shapes are fixed, the
// narrowest scope is captured, its replay is proven, its numbers are those of eager, and only then
// the scope becomes wider. It ends at the first step that fails.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "matrix/plan/ladder.h"
#include "reports/outcome/run_result.h"
#include "reports/record/verdict/exit_code.h"

namespace graphproof::cli {

/// What a run of one case gave.
struct RungResult {
  record::Verdict observed;  // without an expectation, such as that of a planted fault
  std::string reason;
  reports::CheckResults checks;
  std::map<std::string, double> figures;
  std::string reference;  // RUN/CASE
  bool interrupted = false;
};
using RunRung = std::function<RungResult(const matrix::Case&, const std::string& why)>;

/// One step that was taken.
struct Step {
  std::string name;       // "eager is stable"
  std::string result;     // pass, fail, not shown, infrastructure, interrupted
  std::string why;        // what the result follows from
  std::string case_name;  // that ran; empty if the step ran nothing
  std::string reference;  // RUN/CASE; likewise
};

/// Takes the steps towards `target` until one does not pass. `taken` is called after each.
std::vector<Step> climb(const matrix::Case& target, const matrix::Catalogue& catalogue,
                        const matrix::Machine& machine, const RunRung& run,
                        const std::function<void(const Step&)>& taken);

/// That of the last step: 0 pass, 1 fail, 3 infrastructure, 4 not shown, 5 interrupted.
record::ExitCode exit_code(const std::vector<Step>& steps);

}  // namespace graphproof::cli
