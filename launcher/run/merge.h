// The runs of the shards of a plan joined to one run: the whole plan in its order, every record and
// the evidence of every attempt. The result is a run folder like any other.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"
#include "reports/record/job/plan.h"
#include "reports/record/job/shard.h"

namespace graphproof::launcher {

/// The SHA-256 of a plan that is run in shards, without the expected seconds: each shard learns
/// those from earlier runs on its own machine.
std::string sharded_plan_sha256(std::vector<record::PlanLine> plan);

/// The lines of the plan that belong to the shard.
std::vector<record::PlanLine> lines_of(const record::Shard& shard,
                                       const std::vector<record::PlanLine>& plan);

/// The run that is made.
struct MergeInto {
  std::filesystem::path folder;  // exists and is empty
  std::string run_id;
  std::vector<std::string> command;
};

/// Writes the joined run. Throws matrix::InputError, before `into` is written, when a run is no
/// shard, is there twice, is of another plan, seed or stack, or when one is missing: a case that
/// was never run must not look as if it had not been planned.
reports::RunResult merge(const std::vector<std::filesystem::path>& shards, const MergeInto& into);

/// Only the checks that merge() makes first.
void expect_mergeable(const std::vector<std::filesystem::path>& shards);

}  // namespace graphproof::launcher
