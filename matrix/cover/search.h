// Fewer rows: takes a row away and repairs what it alone covered, one cell at a time, with a tabu
// list; rows that cover everything again are the next best answer. The family is that of TCA (Lin
// and others, 2015) and FastCA; here bits make a move's score a few words of AND and popcount.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "matrix/cover/greedy.h"
#include "matrix/cover/number_set.h"

namespace graphproof::cover {

class Search {
 public:
  /// The problem, the layers and the oracle outlive the search.
  Search(const Problem& problem, const std::vector<Tuples>& layers, Oracle& oracle, Random random);

  /// REQUIRES: the rows are valid and cover all that can be covered. Row i keeps the cells (by
  /// column) that `frozen[i]` marks, and stays, if it marks one; `frozen` may be shorter than
  /// `rows`. With a cost the total cost is made small, without one the number of rows.
  void start(std::vector<SymbolRow> rows, const std::vector<std::vector<char>>& frozen,
             SymbolCost cost);

  /// Up to `steps` more, a step being one move. False when nothing is left to do: `enough` rows or
  /// fewer are reached, or no row may go. `stop` is asked now and then, and may be empty.
  bool run(std::int64_t steps, int enough, const std::function<bool()>& stop);

  const std::vector<SymbolRow>& best() const { return best_; }
  double best_cost() const { return best_cost_; }
  std::int64_t steps() const { return steps_; }

  /// What start() will take.
  static double bytes(const Problem& problem, const std::vector<Tuples>& layers, std::size_t rows);

 private:
  struct Layer {
    const Tuples* tuples;
    std::vector<std::uint16_t> counts;  // rows that have each combination
    Plane open, single;                 // in no row, though it can be; in exactly one
    NumberSet missing;                  // those of `open`
    explicit Layer(const Tuples& all)
        : tuples(&all), counts(all.tuple_count(), 0), open(all), single(all) {}
  };
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
  bool tracked_ = false;  // missing combinations are kept: not while the first rows come in
  int count_ = 0;
  std::vector<int> cells_;
  Words bits_, rows_with_;
  std::vector<std::int64_t> changed_at_;  // step of each cell's last change
  std::vector<char> frozen_, kept_;
  SymbolCost cost_;
  std::vector<int> order_;
  std::vector<SymbolRow> best_;
  double best_cost_ = 0;
  std::int64_t steps_ = 0;
  int lowest_ = 0;  // fewest missing since the last row went
};

}  // namespace graphproof::cover
