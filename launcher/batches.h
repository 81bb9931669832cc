// Which cases share processes: a plan's lines become batches. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "reports/record/plan.h"

namespace graphproof::launcher {

/// Cases that one start of the ranks runs, one after another.
struct CaseGroup {
  std::vector<record::PlanLine> lines;  // not empty; equal in ranks, isolation and environment
  int attempt = 1;

  int ranks() const { return lines.front().ranks; }
  double expected_seconds() const;
};

// Loading LibTorch and making communicators, per start.
inline constexpr double kStart_seconds = 2;
// More processes side by side pay only for groups longer than this.
inline constexpr double kWorthSplitting_seconds = 10;
// Cases after a failed one start again; a bound on how many cases one pair of processes carries.
inline constexpr std::size_t kCasesPerBatch = 256;

/// Groups the lines that are to run (no `skip`) by matrix::batch_key, in plan order, and splits long groups so that
/// `slot_count` slots are used. REQUIRES: no line needs more than slot_count ranks.
std::vector<CaseGroup> group_cases(const std::vector<record::PlanLine>& plan, std::string_view device, int slot_count);

}  // namespace graphproof::launcher
