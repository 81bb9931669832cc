// Few rows that still hold every combination of a few axis values: a matrix file and its rules as a
// model for matrix/cover, and its rows back as cases. What a machine can't run is no row: the
// combinations that are lost by that are counted and explained, apart from those that no rule
// allows.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "matrix/cover/model/model.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/plan/expand.h"

namespace graphproof::matrix {

/// Combinations of `strength` values: raw = covered + unreachable + lost.
struct CoverCount {
  std::vector<std::string> axes;  // of a group; empty for all
  int strength = 2;
  double raw = 0, covered = 0;
  double unreachable = 0;  // forbidden by rules and constraints
  double lost = 0;         // allowed, but this machine or this version can't run them
};

/// A value, or a combination of values, that no row of the plan has.
struct NotCovered {
  std::vector<std::pair<std::string, std::string>> values;  // axis, value as text
  bool lost = false;                                        // else unreachable
  std::vector<std::string> reason;  // the fewest ids that together forbid it
};

struct Covering {
  std::vector<ExpandedRow> rows;
  std::vector<CoverCount> counts;       // the whole first, then each group
  std::vector<NotCovered> not_covered;  // values, then combinations without such a value
  std::int64_t not_covered_left_out = 0;
  std::int64_t dropped = 0;   // rows of the earlier plan that could not be kept
  std::int64_t steps = 0;     // done
  std::int64_t at_least = 0;  // no plan can have fewer rows
  double cost = 0;
  std::vector<std::string> unknown;  // rules that some row left undecided
  std::vector<std::string> idle;     // rules and constraints that forbid nothing in this matrix
};

/// What forbids these cells: the fewest ids that together do. REQUIRES: the oracle is the model's,
/// and finds no row.
NotCovered not_covered(const cover::Model& model, cover::Oracle& oracle, const cover::Cells& cells);

nlohmann::json to_json(const NotCovered& one);
nlohmann::json to_json(const Covering& covering);

/// The matrix as a model (matrix_model.h), without or with what the machine can't run.
cover::Model cover_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                         const std::optional<Expression>& where, bool runnable);

/// Rows that cover what can be run. Include rows of the file that name only varying axes and their
/// values, and that the machine can run, are completed to rows; the others are left to the caller.
/// `previous`: cases of an earlier plan, kept where they are still valid or made so by at most two
/// changes, unless that costs more than 3 % and more than one row. Throws InputError: a
/// contradiction (the minimal set of ids is named), a rule that reads too many values to be tabled.
Covering cover_rows(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                    const std::optional<Expression>& where, const CoverRequest& request,
                    std::int64_t seed, const std::vector<Case>& previous = {});

}  // namespace graphproof::matrix
