// Which cases share processes: the lines of a plan become batches. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/record/job/plan.h"

namespace graphproof::launcher {

/// One attempt at a case.
struct Attempt {
  record::PlanLine line;
  int number = 1;
  std::string again;  // why the case runs again; "" for a first attempt
};

/// Cases that the same ranks run, one after another.
struct CaseGroup {
  std::vector<Attempt> attempts;  // not empty; equal in ranks, isolation and environment
  bool divergence = false;        // run only to find the first divergent tensor
                                  // (reports/analysis/divergence.h): no verdict comes of it

  int ranks() const { return attempts.front().line.ranks; }
  double expected_seconds() const;
};

// The time that a start takes to load LibTorch and to make communicators.
inline constexpr double kStart_seconds = 2;
// A group that takes less than this is not split: a further start would cost more than it saves.
inline constexpr double kWorthSplitting_seconds = 10;
// A failed case ends its processes, and the cases after it start again. The bound limits how many
// cases the same processes run.
inline constexpr std::size_t kCasesPerBatch = 256;

/// Groups attempts by matrix::batch_key, in their order, and splits long groups so that
/// `slot_count` slots are used. REQUIRES: no case needs more than slot_count ranks.
std::vector<CaseGroup> group_cases(const std::vector<Attempt>& attempts, std::string_view device,
                                   int slot_count);

}  // namespace graphproof::launcher
