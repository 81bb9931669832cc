// A partial row: which symbols each column may still take, kept closed under unit propagation.
// Copyable, so that a decision is undone by going back to a copy.
#pragma once

#include <vector>

#include "matrix/cover/problem.h"

namespace graphproof::cover {

class Domains {
 public:
  /// Nothing decided. `alive()` is false where propagation alone shows that no row exists.
  explicit Domains(const Problem& problem);

  bool alive() const { return alive_; }
  bool can(int symbol) const { return has(bits_.data(), symbol); }
  int size(int column) const { return sizes_[static_cast<std::size_t>(column)]; }
  /// REQUIRES: size(column) >= 1. The first symbol that is left.
  int first(int column) const;
  const Word* bits() const { return bits_.data(); }

  /// The column of `symbol` takes it. False, and no longer alive, where propagation finds a
  /// contradiction.
  bool assign(int symbol);
  bool remove(int symbol);

 private:
  void take(int symbol);
  bool propagate();
  bool propagate_cube(const Cube& cube);

  const Problem* problem_;
  Words bits_;
  std::vector<int> sizes_;
  std::vector<int> changed_;  // columns whose consequences are not drawn yet
  bool alive_ = true;
};

}  // namespace graphproof::cover
