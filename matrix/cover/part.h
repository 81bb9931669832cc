// One model without negative values and a list of demands: first answers, then the search. What
// `cover` calls once, or once for the ordinary values and once for each negative one.
#pragma once

#include <vector>

#include "matrix/cover/cover.h"
#include "matrix/cover/problem.h"

namespace graphproof::cover {

struct PartDemand {
  std::vector<int> columns;  // in increasing order
  int strength = 2;
};

/// `result.demands` are as `demands`, one each. REQUIRES: the model has a valid row.
Result cover_part(const Model& model, const std::vector<PartDemand>& demands,
                  const Options& options);

}  // namespace graphproof::cover
