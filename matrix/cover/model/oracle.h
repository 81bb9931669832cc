// Asks the SAT solver CaDiCaL whether a valid row exists. Its answer is exact where propagation
// gives up, and decides what can't be covered.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// The solver of one model. Not thread-safe: each thread has its own.
class Oracle {
 public:
  /// REQUIRES: check_model(model) passes, and the model outlives the oracle.
  explicit Oracle(const Model& model);
  ~Oracle();

  /// Whether a valid row with these cells exists; row() is then one, hidden parameters included.
  /// The solver tries the values `preferred` first: one for each parameter, hidden ones included,
  /// or empty.
  bool solve(std::span<const Cell> cells, std::span<const int> preferred = {});
  const std::vector<int>& row() const { return row_; }

  /// Makes the rows with these values of the visible parameters invalid for solve().
  void exclude(const Row& row);

  /// Why no valid row has these cells: a minimal set of constraints, as indices in increasing
  /// order. It is empty if a row exists, or if only two negative values exclude it.
  std::vector<int> reason(std::span<const Cell> cells);

  long calls() const { return calls_; }

 private:
  struct Encoded;
  const Model* model_;
  std::unique_ptr<Encoded> hard_;
  /// The same with a switch for each constraint, for reason(); built when it is first needed.
  std::unique_ptr<Encoded> named_;
  std::vector<int> row_;
  long calls_ = 0;
};

}  // namespace graphproof::cover
