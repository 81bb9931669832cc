// What has to be covered: one layer for the strength of the whole model and one for each group.
// While rows are added, it knows which combinations are still open.
#pragma once

#include <vector>

#include "matrix/cover/model/random.h"
#include "matrix/cover/tuples.h"

namespace graphproof::cover {

/// The other decided cells of a row as each layer sees them: only those of its columns, in order.
/// REQUIRES: the layers outlive it.
class Neighbours {
 public:
  explicit Neighbours(const std::vector<Tuples>& layers);
  /// Looks at the neighbours of the cell in `column` of `row`, in which undecided columns are -1.
  void look(const int* row, int column);
  /// As look(), for a caller that calls only Plane::count() next: that needs no list for pairs.
  void look_to_count(const int* row, int column) {
    if (deep_) return look(row, column);
    for (std::size_t layer = 0; layer < concerns_.size(); ++layer)
      concerns_[layer] = (*layers_)[layer].position(column) >= 0;
  }
  bool concerns(std::size_t layer) const { return concerns_[layer]; }
  const Others& of(std::size_t layer) const { return others_[layer]; }

 private:
  const std::vector<Tuples>* layers_;
  std::vector<std::vector<int>> symbols_;
  std::vector<Others> others_;
  std::vector<char> concerns_;
  bool deep_ = false;  // whether some layer's strength is above 2
};

/// The open combinations of all layers. REQUIRES: the problem and the layers outlive it.
class Targets {
 public:
  /// All combinations are open except those with a pair that is known to be forbidden.
  Targets(const Problem& problem, const std::vector<Tuples>& layers);

  /// Closes the combinations of a full row, given as symbols and as bits.
  void cover(const int* row, const Word* bits);
  /// How many open combinations `symbol` forms with its neighbours, whose bits are `bits`.
  int gain(const Neighbours& neighbours, int symbol, const Word* bits) const {
    int sum = 0;
    for (std::size_t layer = 0; layer < open_.size(); ++layer)
      if (neighbours.concerns(layer)) sum += open_[layer].count(neighbours.of(layer), symbol, bits);
    return sum;
  }
  /// What a full row would cover. Each combination weighs as much as the cube of the number of
  /// combinations that its columns still have open, because the columns with most open combinations
  /// determine how many rows are needed.
  double worth(const int* row, const Word* bits) const;
  /// Draws an open combination of the columns that have the most of them left. False if none is
  /// left.
  bool pick(Random& random, std::size_t& layer, Tuple& tuple);
  /// Excludes a combination: nothing has to cover it.
  void close(std::size_t layer, const Tuple& tuple);

  bool open(std::size_t layer, const Tuple& tuple) const { return open_[layer].test(tuple.data()); }
  const Plane& plane(std::size_t layer) const { return open_[layer]; }
  double open_count(std::size_t layer) const;
  /// The largest number of open combinations of one choice of columns; at least so many rows are
  /// needed.
  int most() const;

 private:
  /// A choice of columns of a layer.
  struct Columns {
    std::uint32_t layer = 0, number = 0;
  };
  void open_all(std::size_t layer);
  std::size_t number_of(std::size_t layer, const int* symbols) const;
  bool find(const Columns& columns, Random& random, Tuple& tuple) const;

  const Problem* problem_;
  const std::vector<Tuples>* layers_;
  std::vector<Plane> open_;
  std::vector<std::vector<int>> left_;  // open combinations, by layer and choice of columns
  /// For each layer, [slot * symbols + symbol]: what the symbol adds to the number of its choice.
  std::vector<std::vector<std::uint32_t>> places_;
  /// The choices of columns by the open combinations that they had when they were queued, which is
  /// an upper bound of what they have later.
  std::vector<std::vector<Columns>> queue_;
};

}  // namespace graphproof::cover
