// Finds a full valid row that has given cells: first by propagation and choice, then, where that
// fails, by asking the oracle.
#pragma once

#include <vector>

#include "matrix/cover/domains.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/random.h"
#include "matrix/cover/problem.h"

namespace graphproof::cover {

/// Rows here are the symbols of all columns, hidden ones included. Not thread-safe, because an
/// oracle is not. REQUIRES: the problem and the oracle outlive it.
class RowBuilder {
 public:
  RowBuilder(const Problem& problem, Oracle& oracle);

  /// Fills `row`, which has columns() symbols. Columns are decided in the order `order`, and
  /// `choose(column, domains, row)` returns one of the symbols that the column may still take; in
  /// `row` columns that are not decided yet are -1. False if no valid row has the symbols `fixed`.
  template <class Choose>
  bool build(const std::vector<int>& fixed, const std::vector<int>& order, const Choose& choose,
             int* row);

 private:
  bool ask(const std::vector<int>& fixed, int* row);

  const Problem* problem_;
  Oracle* oracle_;
  Domains start_;
};

template <class Choose>
bool RowBuilder::build(const std::vector<int>& fixed, const std::vector<int>& order,
                       const Choose& choose, int* row) {
  Domains domains = start_;
  for (int column = 0; column < problem_->columns(); ++column) row[column] = -1;
  for (const int symbol : fixed) {
    if (!domains.assign(symbol)) return false;
    row[problem_->column_of(symbol)] = symbol;
  }
  if (!domains.alive()) return false;
  for (const int column : order) {
    if (row[column] >= 0) continue;
    while (true) {
      const int symbol =
          domains.size(column) == 1 ? domains.first(column) : choose(column, domains, row);
      if (domains.size(column) == 1 || !problem_->constrained(symbol)) {
        // This can't fail: the only symbol left is propagated already, and an unconstrained symbol
        // has no consequences.
        domains.assign(symbol);
        row[column] = symbol;
        break;
      }
      Domains before = domains;
      if (domains.assign(symbol)) {
        row[column] = symbol;
        break;
      }
      domains = std::move(before);
      if (!domains.remove(symbol)) return ask(fixed, row);
    }
  }
  return true;
}

}  // namespace graphproof::cover
