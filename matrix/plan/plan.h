// Makes a plan: one line for each case, with everything that the launcher needs to run it and that
// the reports need to judge it. The same matrix file, machine, catalogue and choices give the same
// plan.
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

/// How many rows of an earlier plan were kept, changed or given up, and how many rows are new.
struct Extended {
  std::int64_t kept = 0, repaired = 0, dropped = 0, fresh = 0;
};

/// What a command line may ask for in addition to the profile.
struct PlanChoices {
  std::optional<std::int64_t> seed = {};  // instead of the profile's
  /// The cases of an earlier plan that are to be kept; for profiles with `cover`.
  std::optional<std::vector<Case>> previous = {};
  /// List what is unreachable, and do not refuse a file that has unreachable values.
  bool explain = false;
};

/// The cases of a profile on a machine, and how many rows were left out for which reason.
struct Plan {
  std::string profile;
  std::int64_t seed = 1;
  std::int64_t budget_ms = 0;  // 0: none
  std::string matrix_source, matrix_sha256;
  int axes_version = 0;
  std::vector<record::PlanLine> lines;   // in planned order, skipped ones included
  cover::RowCount raw, valid, filtered;  // rows of the product
  std::int64_t negative = 0, faults = 0;
  std::vector<Removed> removed;
  std::vector<std::string> idle;                // rules and constraints that removed no row
  std::map<std::string, std::int64_t> skipped;  // verdict -> lines
  std::vector<std::string> unknown_rules, not_isolated;
  std::optional<Covering> covering;  // for a profile with `cover`; its rows are in `lines`
  /// With PlanChoices::explain: the values and pairs that no valid row has.
  std::vector<NotCovered> unreachable;
  std::optional<Extended> extended;  // with PlanChoices::previous

  /// The sum over the lines that run of GPUs times expected minutes.
  double gpu_minutes() const;

  /// The counts, for `plan` and run.json.
  nlohmann::json summary() const;
};

/// Makes the plan of a profile. `where` is a further filter, from the command line; if it leaves
/// nothing, the plan has no lines. Throws InputError for an unknown profile, constraints that
/// contradict each other (a minimal set of them is named), an axis or a value that no valid row has
/// on any machine, a profile with `sample` of which no case can run on this machine, and for more
/// cases than a plan may have.
Plan make_plan(const MatrixFile& file, const Catalogue& catalogue, std::string_view profile,
               const Machine& machine, const std::optional<Expression>& where,
               const PlanChoices& choices = {});

}  // namespace graphproof::matrix
