// CaDiCaL's word on which rows exist: exact where propagation gives up, and the judge of what can't
// be covered.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// Not thread-safe; one per thread.
class Oracle {
 public:
  /// REQUIRES: check_model(model) passes, and the model outlives the oracle.
  explicit Oracle(const Model& model);
  ~Oracle();

  /// Is there a valid row with these cells? `liking`, empty or a value for each parameter (hidden
  /// ones too), is tried first. The row found is `row()`, hidden parameters included.
  bool solve(std::span<const Cell> cells, std::span<const int> liking = {});
  const std::vector<int>& row() const { return row_; }

  /// Why no valid row has these cells: indices of constraints, in order, of which none can be left
  /// out. Empty where a row exists, and where only the rule of one negative value per row stands
  /// against it.
  std::vector<int> reason(std::span<const Cell> cells);

  long calls() const { return calls_; }

 private:
  struct Encoded;
  const Model* model_;
  std::unique_ptr<Encoded> hard_,
      named_;  // named_ has a switch for each constraint and is built when first needed
  std::vector<int> row_;
  long calls_ = 0;
};

}  // namespace graphproof::cover
