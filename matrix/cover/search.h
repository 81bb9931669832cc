// Searches for fewer rows. It removes a row and changes one cell at a time, under a tabu list,
// until the remaining rows cover again what the removed one alone had covered; they are then the
// best answer. The method is that of TCA (Lin and others, 2015) and FastCA; bit sets make the score
// of a move a few words of AND and popcount.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "matrix/cover/greedy.h"
#include "matrix/cover/number_set.h"

namespace graphproof::cover {

/// One search, on one thread.
class Search {
 public:
  /// REQUIRES: the problem, the layers and the oracle outlive the search.
  Search(const Problem& problem, const std::vector<Tuples>& layers, Oracle& oracle, Random random);

  /// Begins with rows that are valid and cover all that can be covered. `frozen[i]` marks the
  /// cells, by column, that row i keeps; a row with a mark is never removed. `frozen` may be
  /// shorter than `rows`. With a cost the search makes the total cost small, without one the number
  /// of rows.
  void start(std::vector<SymbolRow> rows, const std::vector<std::vector<char>>& frozen,
             SymbolCost cost);

  /// Makes up to `steps` more moves. False if nothing is left to do: there are `enough` rows or
  /// fewer, or no row may be removed. `stop` may be empty and is called from time to time.
  bool run(std::int64_t steps, int enough, const std::function<bool()>& stop);

  const std::vector<SymbolRow>& best() const { return best_; }
  double best_cost() const { return best_cost_; }
  std::int64_t steps() const { return steps_; }

  /// The memory that start() will take.
  static double bytes(const Problem& problem, const std::vector<Tuples>& layers, std::size_t rows);

 private:
  /// A strength over some columns, and which of its combinations the rows cover.
  struct Layer {
    const Tuples* tuples;
    std::vector<std::uint16_t> counts;  // how many rows have each combination
    Plane open;                         // combinations that no row has, though a valid row can
    Plane single;                       // combinations that exactly one row has
    NumberSet missing;                  // the combinations of `open`, to draw from
    explicit Layer(const Tuples& all)
        : tuples(&all), counts(all.tuple_count(), 0), open(all), single(all) {}
  };
  /// A change of one cell; `delta` is the change of the number of missing combinations.
  struct Move {
    int row = -1, column = 0, symbol = 0, delta = 0;
    double cost = 0;
  };

  std::size_t cell(int row, int column) const {
    return static_cast<std::size_t>(row) * columns_ + static_cast<std::size_t>(column);
  }
  int* cells(int row) { return cells_.data() + cell(row, 0); }
  Word* bits(int row) { return bits_.data() + static_cast<std::size_t>(row) * words_; }
  Word* rows_with(int symbol) {
    return rows_with_.data() + static_cast<std::size_t>(symbol) * row_words_;
  }

  void fill(int row, int symbol);
  void empty(int row, int column);
  void replace(int row, const SymbolRow& made);
  void remove_row(int row);
  bool remove_one();
  void save();
  void cheapen();

  void step();
  int draw(Tuple& tuple);
  Move best_move(const Tuple& tuple, int strength, int total);
  void force(const Tuple& tuple, int strength);
  int missing() const;
  int delta(int row, int column, int symbol);
  int loss(int row);
  double cost_of(int row);
  double cost_change(int row, int column, int symbol);

  const Problem* problem_;
  RowBuilder builder_;
  Random random_;
  Neighbours neighbours_;
  std::vector<Layer> layers_;
  std::size_t columns_, words_, row_words_ = 0;
  bool tracked_ = false;  // whether `missing` is kept; not while the first rows are added
  int count_ = 0;
  std::vector<int> cells_;
  Words bits_, rows_with_;
  std::vector<std::int64_t> changed_at_;  // the step of each cell's last change
  std::vector<char> frozen_, kept_;
  SymbolCost cost_;
  std::vector<int> order_;
  std::vector<SymbolRow> best_;
  double best_cost_ = 0;
  std::int64_t steps_ = 0;
  int lowest_ = 0;  // the fewest missing combinations since the last removal of a row
};

}  // namespace graphproof::cover
