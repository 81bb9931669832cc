// What has to be covered: one layer for the whole model's strength and one for each group, and
// which combinations are still open while rows are added one after the other.
#pragma once

#include <vector>

#include "matrix/cover/model/random.h"
#include "matrix/cover/tuples.h"

namespace graphproof::cover {

/// The other cells of a row as each layer sees them: of its columns, in order, decided ones only.
class Neighbours {
 public:
  explicit Neighbours(const std::vector<Tuples>& layers);
  /// For the cell in `column` of `row` (symbols, -1 where undecided).
  void look(const int* row, int column);
  /// As look(), where only Plane::count() follows, which needs no list for pairs.
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
  bool deep_ = false;  // some layer's strength is above 2
};

class Targets {
 public:
  /// Everything that the pairs known as forbidden don't exclude is open.
  Targets(const Problem& problem, const std::vector<Tuples>& layers);

  /// Takes what the full row (symbols, their bits) has.
  void cover(const int* row, const Word* bits);
  /// How many open combinations `symbol` would form with its neighbours, whose bits are `bits`.
  int gain(const Neighbours& neighbours, int symbol, const Word* bits) const {
    int sum = 0;
    for (std::size_t layer = 0; layer < open_.size(); ++layer)
      if (neighbours.concerns(layer)) sum += open_[layer].count(neighbours.of(layer), symbol, bits);
    return sum;
  }
  /// What a full row would cover, each combination weighed by the cube of what its columns still
  /// have open: those decide how many rows there must be.
  double worth(const int* row, const Word* bits) const;
  /// A random open combination of the columns that have most of them left, or false if nothing is
  /// left.
  bool pick(Random& random, std::size_t& layer, Tuple& tuple);
  /// Nothing has to cover this one.
  void close(std::size_t layer, const Tuple& tuple);

  bool open(std::size_t layer, const Tuple& tuple) const { return open_[layer].test(tuple.data()); }
  const Plane& plane(std::size_t layer) const { return open_[layer]; }
  double open_count(std::size_t layer) const;
  /// The most that one choice of columns has open: so many rows at least are needed for it.
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
  std::vector<std::vector<int>> left_;  // per layer and choice of columns: open combinations
  std::vector<std::vector<std::uint32_t>>
      places_;  // per layer, [slot * symbols + symbol]: what it adds to that number
  std::vector<std::vector<Columns>> queue_;  // by what was left when queued: an upper bound later
};

}  // namespace graphproof::cover
