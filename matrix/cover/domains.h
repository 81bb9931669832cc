// A partial row: which symbols each column may still take. Unit propagation removes symbols that a
// decision makes impossible. A copy before a decision serves to undo it.
#pragma once

#include <vector>

#include "matrix/cover/problem.h"

namespace graphproof::cover {

/// The symbols that are left of each column. REQUIRES: the problem outlives it.
class Domains {
 public:
  /// Nothing is decided yet. alive() is false if propagation alone shows that no row exists.
  explicit Domains(const Problem& problem);

  bool alive() const { return alive_; }
  bool can(int symbol) const { return has(bits_.data(), symbol); }
  int size(int column) const { return sizes_[static_cast<std::size_t>(column)]; }
  /// The first symbol that is left of the column. REQUIRES: size(column) >= 1.
  int first(int column) const;
  const Word* bits() const { return bits_.data(); }

  /// The column of `symbol` takes it. False, and alive() from then on too, if propagation finds a
  /// contradiction.
  bool assign(int symbol);
  /// The column of `symbol` does not take it. The result is as of assign().
  bool remove(int symbol);

 private:
  void take(int symbol);
  bool propagate();
  bool propagate_cube(const Cube& cube);

  const Problem* problem_;
  Words bits_;
  std::vector<int> sizes_;
  std::vector<int> changed_;  // columns that propagation has yet to look at
  bool alive_ = true;
};

}  // namespace graphproof::cover
