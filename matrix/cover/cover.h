// Covering arrays: few rows in which every combination of `strength` values that a valid row can
// have stands in at least one. No clock: steps decide, and who wants seconds as a cap gives `stop`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

struct Progress {
  std::size_t rows = 0;  // of the best answer so far
  std::int64_t steps = 0;
};

struct Options {
  int strength = 2;  // 1 to kMaxStrength; the model's groups have their own
  std::uint64_t seed = 1;
  std::int64_t steps = 200'000;  // moves of the search for fewer rows, in each of `searches`
  int starts =
      0;  // first answers that the search chooses from; 0: as many as the model's size allows
  int searches = 1;  // independent ones, the best counts
  int threads = 1;  // starts and searches share them; no effect on the result unless `stop` says so
  double memory_bytes =
      4e9;  // a model that needs more is refused, or gets a first answer without a search
  std::vector<Row> required;  // must-have rows, may be partial: completed, never changed
  /// An earlier plan's: kept where still valid, or made so by at most two cells, unless the answer
  /// would then be larger than a fresh one by more than 3 % and more than a row; then as many from
  /// the front as that allows.
  std::vector<Row> previous;
  /// What a full row of visible parameters costs, above 0: then the total is made small instead of
  /// the number. Called from several threads at once where there are several.
  std::function<double(const Row&)> cost;
  /// Asked now and then whether to end early, with the best so far; never before the first answer
  /// is complete. Called from several threads at once where there are several.
  std::function<bool()> stop;
  std::function<void(const Progress&)>
      progress;  // after the first answer and each better one, on the caller's thread
};

enum class Origin { required, previous, fresh };

struct PlannedRow {
  Row cells;
  Origin origin = Origin::fresh;
  int index = -1;         // in `required` or `previous`
  int changed_cells = 0;  // of a previous row that was repaired
};

/// What had to be covered: the whole model, then each group that asks for more.
struct Demand {
  std::vector<int> parameters;
  int strength = 2;
  double raw = 0;    // combinations of the product
  double valid = 0;  // those that some valid row has; all are covered
};

struct Result {
  std::vector<PlannedRow> rows;  // those given first, then by how much each adds
  std::vector<int> dropped;      // previous rows that can't or should not be kept
  std::vector<Demand> demands;
  /// What no valid row has: values, pairs of other values, larger combinations without such a pair.
  std::vector<Cells> excluded;
  std::int64_t excluded_left_out = 0;  // beyond kMostExcluded
  std::int64_t steps = 0;
  std::int64_t at_least = 0;  // no set of rows can be smaller
  double cost = 0;            // total; the number of rows where none is given
  bool searched = true;       // false where memory_bytes allowed only the first answer
};
constexpr std::size_t kMostExcluded = 100'000;

/// Throws InputError: the model contradicts itself (the minimal set of constraints is named), a
/// required row can't be completed, an option is out of range, the answer would not fit the memory.
Result cover(const Model& model, const Options& options);

}  // namespace graphproof::cover
