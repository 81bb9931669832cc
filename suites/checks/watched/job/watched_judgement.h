// Collects what one check finds in a watched run and turns it into a result. A defect takes
// precedence over missing evidence. If a part that the check needs was not seen, it is unexercised
// and never passes. A pass needs confirmed evidence of every process that has graphs, so that no
// check passes by reading nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "reports/record/run/checks.h"
#include "suites/checks/watched/job/watched_job.h"

namespace graphproof::checks::watched {

/// What is wrong, without the process. The texts are sentences without a full stop; `why` says what
/// it does to a run, `next` what cures it.
struct Finding {
  std::string what, got, want, why, next;
};

/// The findings of one check on one watched run, which it refers to.
class WatchedJudgement {
 public:
  /// `needs`: the parts that have to be seen in each process that has graphs.
  WatchedJudgement(std::string_view check, const WatchedJob& job,
                   const std::vector<std::string>& needs);

  /// The first defect is kept, the others are counted.
  void defect(const JobProcess& process, Finding finding);
  /// A defect of the whole run.
  void defect(Finding finding);
  /// This run or this evidence cannot show it.
  void unexercised(std::string reason);
  /// The process does not use what this check is about: `reason`, such as "no graph was updated".
  void excuse(const JobProcess& process, std::string reason);
  /// What this check compares does not exist in such a job, whatever was seen.
  void not_applicable(std::string reason);
  /// For checks that compare ranks: makes a job of one process not applicable, and keeps the check
  /// from passing if ranks of the job left no evidence. Returns ranks(job).
  std::vector<const JobProcess*> all_ranks();
  /// Evidence of the process was judged and is in order.
  void confirm(const JobProcess& process);

  /// `summary` and `want` are the got and want of a pass.
  record::CheckResult result(std::string summary, std::string want);

 private:
  record::CheckResult failed() const;
  /// Why nothing can pass; nothing if it can.
  std::optional<std::string> missing() const;

  std::string check_;
  const WatchedJob& job_;
  std::vector<std::string> needs_;
  std::optional<Finding> defect_;
  const JobProcess* of_ = nullptr;  // the process of `defect_`
  int defects_ = 0;
  std::optional<std::string> not_applicable_, unexercised_, excuse_;
  std::set<const JobProcess*> confirmed_, excused_;
};

}  // namespace graphproof::checks::watched
