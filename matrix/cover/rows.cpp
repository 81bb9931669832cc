#include "matrix/cover/rows.h"

namespace graphproof::cover {

RowBuilder::RowBuilder(const Problem& problem, Oracle& oracle)
    : problem_(&problem), oracle_(&oracle), start_(problem) {}

bool RowBuilder::ask(const std::vector<int>& fixed, int* row) {
  Cells cells;
  for (const int symbol : fixed) {
    const int column = problem_->column_of(symbol);
    cells.push_back({column, symbol - problem_->first(column)});
  }
  std::vector<int> liking;
  for (int column = 0; column < problem_->columns(); ++column)
    liking.push_back(row[column] < 0 ? -1 : row[column] - problem_->first(column));
  if (!oracle_->solve(cells, liking)) return false;
  for (int column = 0; column < problem_->columns(); ++column)
    row[column] = problem_->first(column) + oracle_->row()[static_cast<std::size_t>(column)];
  return true;
}

}  // namespace graphproof::cover
