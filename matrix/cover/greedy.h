// First answers: one row after the other, each built around an open combination of the columns that
// have most of them left, columns with most values first, each taking the value that covers most
// with what is decided.
#pragma once

#include <functional>
#include <vector>

#include "matrix/cover/rows.h"
#include "matrix/cover/targets.h"

namespace graphproof::cover {

/// Rows in this folder are symbols of all columns, hidden ones too.
using SymbolRow = std::vector<int>;
/// What a row costs, above 0; empty where all cost the same.
using SymbolCost = std::function<double(const SymbolRow&)>;

class Greedy {
 public:
  /// What is proved unreachable on the way is forbidden in `problem` where it is a value or a pair.
  Greedy(Problem& problem, const std::vector<Tuples>& layers, Oracle& oracle, Random random);

  /// Adds rows until nothing is open. Each is the best of `candidates` by worth (and cost). False
  /// if `stop` said so before the end; it is asked once a row and may be empty.
  bool fill(Targets& targets, int candidates, const SymbolCost& cost,
            const std::function<bool()>& stop, std::vector<SymbolRow>& rows);

  /// One row around these symbols that covers much of what is open; false where no valid row has
  /// them.
  bool build(const Targets& targets, const std::vector<int>& fixed, SymbolRow& row) {
    return build(targets, fixed, {}, row);
  }

  /// Adds the rows of a pattern (partial: -1 where it says nothing) whose symbols are taken where
  /// the constraints let them; what adds nothing is left out. False if `stop` said so before the
  /// end.
  bool fill_along(const std::vector<SymbolRow>& pattern, Targets& targets,
                  const std::function<bool()>& stop, std::vector<SymbolRow>& rows);

  struct Unreachable {
    std::size_t layer = 0;
    Tuple tuple{};
  };
  /// What was open at first and turned out to be in no valid row.
  const std::vector<Unreachable>& unreachable() const { return unreachable_; }

 private:
  /// Symbols of `wished` are taken where they can be, and decided first; empty: none.
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
