// The jobs of a shrink: cases run alone, in rounds that lie below the run that they explain. A
// round that is there is read, one that was cut off is resumed, so that the same command goes on
// where it was stopped.
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

/// What a case's record says about the failure that is looked into. `invalid`: lost to the
/// infrastructure, not run, failed in another way, or without the check that shows the failure.
shrink::Outcome outcome_of(const reports::CaseResult& result, const reports::Signature& signature);

struct JobResult {
  shrink::Outcome outcome = shrink::Outcome::invalid;
  std::string case_id, name, verdict,
      folder;  // folder: of the attempt, relative to the run; "" where nothing ran
  bool infrastructure = false;
};

/// Thrown out of run() when a signal stopped a round: the same command goes on.
struct Interrupted {};

class ShrinkJobs {
 public:
  /// `run`: the recorded run, `folder`: below it, made where it is absent. The references outlive
  /// this.
  ShrinkJobs(Surroundings& surroundings, const reports::RunResult& run,
             const launcher::Device& device, reports::Signature signature,
             std::filesystem::path run_folder, std::filesystem::path folder);

  /// Whether this machine runs the case and no rule refuses it.
  bool allowed(const matrix::Case& test_case) const;
  /// Runs them side by side as far as there are slots; results in their order. Cases that are not
  /// allowed are not run.
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
