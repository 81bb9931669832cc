// Which cases share processes: a plan's lines become batches. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/plan.h"

namespace graphproof::launcher {

/// A case as it is to be run now.
struct Attempt {
  record::PlanLine line;
  int number = 1;
  std::string again;  // why it is not the first; "" of a first one
};

/// Cases that one start of the ranks runs, one after another.
struct CaseGroup {
  std::vector<Attempt> attempts;  // not empty; equal in ranks, isolation and environment
  bool divergence = false;        // run for the first divergent tensor alone
                                  // (reports/analysis/divergence.h): no verdict comes of it

  int ranks() const { return attempts.front().line.ranks; }
  double expected_seconds() const;
};

// Loading LibTorch and making communicators, per start.
inline constexpr double kStart_seconds = 2;
// More processes side by side pay only for groups longer than this.
inline constexpr double kWorthSplitting_seconds = 10;
// Cases after a failed one start again; a bound on how many cases one pair of processes carries.
inline constexpr std::size_t kCasesPerBatch = 256;

/// Groups them by matrix::batch_key, in their order, and splits long groups so that
/// `slot_count` slots are used. REQUIRES: no case needs more than slot_count ranks.
std::vector<CaseGroup> group_cases(const std::vector<Attempt>& attempts, std::string_view device,
                                   int slot_count);

}  // namespace graphproof::launcher
