// The jobs of a shrink: cases that are run alone, in rounds. Each round is a run in a folder of the
// run whose failure is searched. A round that exists is read and one that was cut off is resumed,
// so that the same command continues where it was stopped.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launcher/backend/programs.h"
#include "launcher/cli/verb.h"
#include "matrix/case/case.h"
#include "matrix/case/machine.h"
#include "matrix/shrink/locate.h"
#include "reports/outcome/run_result.h"
#include "reports/outcome/signature.h"

namespace graphproof::cli {

/// What the record of a case says about the failure with `signature`. `invalid`: it says nothing,
/// because the case was lost to the infrastructure, was not run, failed in another way, or did not
/// exercise the check that shows the failure.
shrink::Outcome outcome_of(const reports::CaseResult& result, const reports::Signature& signature);

/// One job and what became of it.
struct JobResult {
  shrink::Outcome outcome = shrink::Outcome::invalid;
  std::string case_id, name, verdict;
  std::string folder;           // of the attempt, relative to the run; empty if nothing ran
  bool infrastructure = false;  // the verdict is infra.*
};

/// Thrown by ShrinkJobs::run() when a signal stopped a round.
struct Interrupted {};

/// Runs cases alone and reads what they show about one failure.
class ShrinkJobs {
 public:
  /// `run` is the recorded run. `folder` is inside `run_folder` and is created when a round needs
  /// it. REQUIRES: `surroundings`, `run` and `device` outlive this object.
  ShrinkJobs(Surroundings& surroundings, const reports::RunResult& run,
             const launcher::Device& device, reports::Signature signature,
             std::filesystem::path run_folder, std::filesystem::path folder);

  /// Whether this machine can run the case and no rule refuses it.
  bool allowed(const matrix::Case& test_case) const;
  /// Runs the cases, concurrently as far as there are slots, and returns their results in order.
  /// Cases that are not allowed are not run.
  std::vector<JobResult> run(const std::vector<matrix::Case>& cases);

 private:
  record::PlanLine line_of(const matrix::Case& test_case) const;
  reports::RunResult run_round(std::vector<record::PlanLine> plan);

  Surroundings& surroundings_;
  const reports::RunResult& run_;
  const launcher::Device& device_;
  const matrix::Machine machine_;
  const reports::Signature signature_;
  const std::filesystem::path run_folder_, folder_;
  int round_ = 0;
};

}  // namespace graphproof::cli
