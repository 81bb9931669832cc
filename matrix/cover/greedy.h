// Makes first answers, row after row. Each row is built around an open combination of those columns
// that have the most open combinations left. The other columns are decided in order of their number
// of values, and each takes the value that covers most together with the values decided before.
#pragma once

#include <functional>
#include <vector>

#include "matrix/cover/rows.h"
#include "matrix/cover/targets.h"

namespace graphproof::cover {

/// A row as the symbol of every column, hidden columns included.
using SymbolRow = std::vector<int>;
/// The cost of a row, above 0; an empty function where all rows cost the same.
using SymbolCost = std::function<double(const SymbolRow&)>;

/// Builds first answers. REQUIRES: problem, layers and oracle outlive it.
class Greedy {
 public:
  /// If a value or a pair turns out to be unreachable on the way, it becomes forbidden in
  /// `problem`.
  Greedy(Problem& problem, const std::vector<Tuples>& layers, Oracle& oracle, Random random);

  /// Adds rows until nothing is open. Each row is the best of `candidates` rows by worth (and
  /// cost). `stop` may be empty and is called once a row; false if it ended the work early.
  bool fill(Targets& targets, int candidates, const SymbolCost& cost,
            const std::function<bool()>& stop, std::vector<SymbolRow>& rows);

  /// Makes one row that has the symbols `fixed` and covers much of what is open. False if no valid
  /// row has them.
  bool build(const Targets& targets, const std::vector<int>& fixed, SymbolRow& row) {
    return build(targets, fixed, {}, row);
  }

  /// Adds one row for each row of a pattern, whose cells may be open (-1). The row takes the
  /// symbols of the pattern where the constraints allow it, and is left out if it covers nothing
  /// new. False if `stop` ended the work early.
  bool fill_along(const std::vector<SymbolRow>& pattern, Targets& targets,
                  const std::function<bool()>& stop, std::vector<SymbolRow>& rows);

  /// A combination that no valid row has.
  struct Unreachable {
    std::size_t layer = 0;
    Tuple tuple{};
  };
  /// The combinations that were open at first and turned out to be in no valid row.
  const std::vector<Unreachable>& unreachable() const { return unreachable_; }

 private:
  /// As above. The columns that have a symbol in `wished` are decided first and take it if they
  /// can; `wished` may be empty.
  bool build(const Targets& targets, const std::vector<int>& fixed, const SymbolRow& wished,
             SymbolRow& row);

  Problem* problem_;
  const std::vector<Tuples>* layers_;
  RowBuilder builder_;
  Random random_;
  Neighbours neighbours_;
  std::vector<int> order_;
  Words bits_;
  std::vector<Unreachable> unreachable_;
};

}  // namespace graphproof::cover
