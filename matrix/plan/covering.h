// Plans few rows that still have every combination of a few axis values. The matrix file and the
// rules become a model for matrix/cover, and its rows become cases. A row that the machine can't
// run is not allowed; the combinations that are lost for that reason are counted and explained
// separately from those that rules forbid.
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

/// How many combinations of `strength` values there are: raw = covered + unreachable + lost.
struct CoverCount {
  std::vector<std::string> axes;  // the axes of a group; empty for all axes
  int strength = 2;
  double raw = 0, covered = 0;
  double unreachable = 0;  // forbidden by rules and constraints
  double lost = 0;         // allowed, but this machine or this version can't run them
};

/// A value, or a combination of values, that no row of the plan has.
struct NotCovered {
  std::vector<std::pair<std::string, std::string>> values;  // axis, value as text
  bool lost = false;                // whether it is lost; otherwise it is unreachable
  std::vector<std::string> reason;  // ids of a minimal set of constraints that forbid it
};

/// A covering plan's rows, and what they cover.
struct Covering {
  std::vector<ExpandedRow> rows;
  std::vector<CoverCount> counts;       // of all axes, then of each group
  std::vector<NotCovered> not_covered;  // values, then combinations without such a value
  std::int64_t not_covered_left_out = 0;
  std::int64_t dropped = 0;   // rows of the earlier plan that could not be kept
  std::int64_t steps = 0;     // that the search made
  std::int64_t at_least = 0;  // no plan can have fewer rows
  double cost = 0;
  std::vector<std::string> unknown;  // rules that some row left undecided
  std::vector<std::string> idle;     // rules and constraints that forbid nothing in this matrix
};

/// Explains why no row has these cells. REQUIRES: the oracle is the model's, and finds no such row.
NotCovered not_covered(const cover::Model& model, cover::Oracle& oracle, const cover::Cells& cells);

nlohmann::json to_json(const NotCovered& one);
nlohmann::json to_json(const Covering& covering);

/// The matrix as a model (matrix_model.h). If `runnable`, rows that the machine can't run are not
/// allowed.
cover::Model cover_model(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                         const std::optional<Expression>& where, bool runnable);

/// Makes rows that cover what can be run. Included rows of the file that name only varying axes and
/// listed values, and that the machine can run, are completed to rows; the caller handles the
/// others. `previous` are cases of an earlier plan, which are kept as Options::previous in
/// matrix/cover/cover.h says. Throws InputError for a contradiction (a minimal set of ids is
/// named), and for a rule that reads too many combinations of values.
Covering cover_rows(const MatrixFile& file, const Catalogue& catalogue, const Machine& machine,
                    const std::optional<Expression>& where, const CoverRequest& request,
                    std::int64_t seed, const std::vector<Case>& previous = {});

}  // namespace graphproof::matrix
