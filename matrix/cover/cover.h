// Makes covering arrays: few rows such that every combination of `strength` values that a valid row
// can have occurs in at least one of them. The search reads no clock and is bounded by steps; a
// caller that wants a bound in seconds passes `stop`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// How far the search has come.
struct Progress {
  std::size_t rows = 0;  // rows of the best answer so far
  std::int64_t steps = 0;
};

/// What to make. The same model and options give the same rows, unless `stop` ends the search.
struct Options {
  int strength = 2;  // 1 to kMaxStrength; the model's groups have strengths of their own
  std::uint64_t seed = 1;
  std::int64_t steps = 200'000;  // moves that each search makes to get rid of rows
  /// How many first answers are made, of which the search starts from the best. 0: as many as the
  /// size of the model allows.
  int starts = 0;
  int searches = 1;  // independent searches; the best answer counts
  int threads = 1;   // they share the starts and searches; the result does not depend on them
  /// A model that needs more is refused, or gets a first answer without a search.
  double memory_bytes = 4e9;
  std::vector<Row> required;  // must-have rows; open cells are filled, the others never change
  /// Rows of an earlier plan. A row that is still valid, or becomes so by a change of at most two
  /// cells, is kept. But if the answer would be larger than a fresh one by more than 3 % and by
  /// more than one row, only as many rows from the front are kept as this bound allows.
  std::vector<Row> previous;
  /// The cost, above 0, of a full row of visible parameters. With it the total cost is made small
  /// instead of the number of rows. Several threads may call it at once.
  std::function<double(const Row&)> cost;
  /// Whether to end early, with the best answer so far. It is called from time to time, but not
  /// before the first answer is complete; several threads may call it at once.
  std::function<bool()> stop;
  /// Called after the first answer and after each better one, on the caller's thread.
  std::function<void(const Progress&)> progress;
};

/// Where a row of an answer comes from.
enum class Origin { required, previous, fresh };

/// A row of an answer.
struct PlannedRow {
  Row cells;
  Origin origin = Origin::fresh;
  int index = -1;         // of the row in `required` or `previous`
  int changed_cells = 0;  // how many cells of a previous row had to be changed
};

/// What had to be covered: all visible parameters, or one group that asks for a strength of its
/// own.
struct Demand {
  std::vector<int> parameters;
  int strength = 2;
  double raw = 0;    // all combinations of their values
  double valid = 0;  // the combinations that some valid row has; all of them are covered
};

/// An answer.
struct Result {
  std::vector<PlannedRow> rows;  // first the given rows, then the others by how much each adds
  std::vector<int> dropped;      // previous rows that can't or should not be kept
  std::vector<Demand> demands;   // the whole model, then each group
  /// What no valid row has: single values, then pairs of other values, then larger combinations
  /// that have no such pair.
  std::vector<Cells> excluded;
  std::int64_t excluded_left_out = 0;  // how many more than kMostExcluded there are
  std::int64_t steps = 0;
  std::int64_t at_least = 0;  // no set of rows can be smaller
  double cost = 0;            // the total cost; without Options::cost the number of rows
  bool searched = true;       // false if memory_bytes allowed only a first answer
};
constexpr std::size_t kMostExcluded = 100'000;

/// Makes a covering array. Throws InputError if the model contradicts itself (a minimal set of
/// constraints is named), a required row can't be completed, an option is out of range, or the
/// answer does not fit into the memory.
Result cover(const Model& model, const Options& options);

}  // namespace graphproof::cover
