// Judges the attempt folders of a run once more, with today's checks and outcome rules. Evidence is
// kept, so a new question can be put to an old run, and a check can be shown to be needed by
// leaving it out.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "reports/outcome/outcome.h"
#include "reports/outcome/run_result.h"
#include "reports/record/job/context.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/checks.h"
#include "reports/record/run/run.h"

namespace graphproof::launcher {

/// For every planned case with an attempt folder: runs the judge (which replaces checks.json), then
/// the outcome rules, folding a second attempt into the first as the run did. Cases without one are
/// not_run, or skipped as planned. The journal is not touched. `dropped`: checks that the judge
/// leaves out. REQUIRES: `folder` is writable and has run.json and plan.jsonl.
reports::RunResult judge_again(const std::filesystem::path& folder,
                               const std::filesystem::path& judge_program,
                               const reports::CheckEffects& effects,
                               const std::vector<std::string>& dropped = {});

/// A run as the judge left it, read once, so that its verdicts can be decided with and without any
/// of its checks.
class JudgedRun {
 public:
  /// REQUIRES: `folder` has run.json and plan.jsonl. Throws ReadError; a checks.json that can't be
  /// read counts as missing.
  explicit JudgedRun(const std::filesystem::path& folder);

  /// The outcome rules, as judge_again applies them. `dropped`: checks that count as never made.
  reports::RunResult decide(const reports::CheckEffects& effects,
                            const std::set<std::string>& dropped = {}) const;

 private:
  /// An attempt as its folder has it.
  struct Attempt {
    std::string folder;  // relative to the run folder
    record::Context context;
    std::optional<record::Checks> checks;
  };
  record::Run run_;
  std::vector<record::PlanLine> plan_;
  std::map<std::string, std::vector<Attempt>> attempts_;  // by case, in their order
  double wall_seconds_ = 0;
};

}  // namespace graphproof::launcher
