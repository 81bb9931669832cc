// Covers one model without negative values: makes first answers, then searches for fewer rows.
// `cover` calls it once for the ordinary values and once for each negative value.
#pragma once

#include <vector>

#include "matrix/cover/cover.h"
#include "matrix/cover/problem.h"

namespace graphproof::cover {

/// Columns whose combinations of `strength` values have to be covered.
struct PartDemand {
  std::vector<int> columns;  // in increasing order
  int strength = 2;
};

/// The demands of the result are those of `demands`, in order. REQUIRES: the model has a valid row.
Result cover_part(const Model& model, const std::vector<PartDemand>& demands,
                  const Options& options);

}  // namespace graphproof::cover
