// The plan: one line per case (reports/record/schema/examples/plan.jsonl) with everything that the
// launcher needs to run it and the reports need to judge it. Pure: the same file, machine and
// catalogue give the same plan.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "matrix/plan/covering.h"
#include "matrix/plan/expand.h"
#include "matrix/plan/plan_line.h"

namespace graphproof::matrix {

/// What became of an earlier plan's rows.
struct Extended {
  std::int64_t kept = 0, repaired = 0, dropped = 0, fresh = 0;
};

/// What a command line may ask for beside the profile.
struct PlanChoices {
  std::optional<std::int64_t> seed = {};  // instead of the profile's
  std::optional<std::vector<Case>> previous =
      {};                // cases of an earlier plan to keep; for profiles with `cover`
  bool explain = false;  // say what is unreachable, even where that is a mistake
};

struct Plan {
  std::string profile;
  std::int64_t seed = 1;
  std::int64_t budget_ms = 0;  // 0: none
  std::string matrix_source, matrix_sha256;
  int axes_version = 0;
  std::vector<record::PlanLine> lines;   // in running order as planned; skipped ones included
  cover::RowCount raw, valid, filtered;  // rows, before any is chosen
  std::int64_t negative = 0, faults = 0;
  std::vector<Removed> removed;
  std::vector<std::string> idle;                // rules and constraints that removed nothing
  std::map<std::string, std::int64_t> skipped;  // verdict -> lines
  std::vector<std::string> unknown_rules, not_isolated;
  std::optional<Covering> covering;  // of a profile with `cover`; its rows are in `lines`
  std::vector<NotCovered>
      unreachable;  // with PlanChoices::explain: values and pairs that no valid row has
  std::optional<Extended> extended;  // of an earlier plan

  /// GPUs times expected time of what is to run.
  double gpu_minutes() const;

  /// The counts, for `plan` and run.json.
  nlohmann::json summary() const;
};

/// `where`: a further filter from the command line; when it leaves nothing, the plan has no lines
/// (exit code 4). Throws InputError: unknown profile, constraints that contradict each other (the
/// smallest set of them is named), an axis or a value that no valid row can hold on any machine,
/// more cases than a plan may have.
Plan make_plan(const MatrixFile& file, const Catalogue& catalogue, std::string_view profile,
               const Machine& machine, const std::optional<Expression>& where,
               const PlanChoices& choices = {});

}  // namespace graphproof::matrix
