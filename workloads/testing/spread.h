// Distributes the rows of a test (engines, captured modules, models) over its layouts. Running all
// pairs takes too long for every commit, so each row runs on as few layouts and each layout with as
// few rows as possible, such that every row and every layout runs. GRAPHPROOF_EVERY_LAYOUT=1 runs
// all pairs (the target every_layout). The profile `layouts` covers pairs of values with the rank
// program.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>

namespace graphproof::engines {

/// Calls body(row, layout...) for the pairs that run. each_layout(row, visit) calls
/// visit(layout...) for the layouts on which the row can run, in the same order on all ranks. It is
/// called twice for each row.
template <class Rows, class EachLayout, class Body>
void spread(const Rows& rows, EachLayout each_layout, Body body) {
  const bool every = std::getenv("GRAPHPROOF_EVERY_LAYOUT") != nullptr;
  std::size_t row_index = 0;
  for (const auto& row : rows) {
    std::size_t fitting = 0, layout_index = 0;
    each_layout(row, [&](const auto&...) { ++fitting; });
    const std::size_t apart = every ? 1 : std::min(std::size(rows), fitting);
    each_layout(row, [&](const auto&... layout) {
      if ((row_index + layout_index++) % apart == 0) body(row, layout...);
    });
    ++row_index;
  }
}

}  // namespace graphproof::engines
