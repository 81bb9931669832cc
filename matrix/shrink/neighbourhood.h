// The valid rows around one failing row: which axes can change at all, what the rules tie together,
// and rows that keep some of its values and change as much of the rest as the rules allow.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "matrix/cover/model/model.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/random.h"
#include "matrix/shrink/candidates.h"

namespace graphproof::shrink {

class Neighbourhood {
 public:
  /// REQUIRES: `failing` is a valid row of the model, which outlives this. `parameters` are those
  /// that bits stand for: each that can change gets one, in order; where there are more than
  /// kMostBits, neighbours share one.
  Neighbourhood(const cover::Model& model, cover::Row failing, const std::vector<int>& parameters);

  const cover::Row& failing() const { return failing_; }
  /// What each bit stands for; a bit is set in a row where all of these equal the failing row.
  const std::vector<std::vector<int>>& bits() const { return bits_; }
  /// Those of the parameters given that have this value in every valid row.
  const std::vector<int>& fixed() const { return fixed_; }
  bool shared() const { return shared_; }

  /// kAny differs from every value.
  Mask mask(const cover::Row& row) const;
  /// The parameters behind the bits, in order.
  std::vector<int> parameters(Mask mask) const;

  /// Every bit that is set in all valid rows that have `mask`. Two masks with the same closure are
  /// the same condition.
  Mask closure(Mask mask);

  /// A row that passed: its values are liked from now on.
  void like(const cover::Row& row);

  /// A valid row that keeps `keep` and differs in bit `without` (where given); nothing where no
  /// valid row does both. The rest is made from one of the rows that passed, where there is one.
  /// `bare`: what it has in common with the failing row is changed too, as far as the rules allow,
  /// so that little but `keep` is left; otherwise it stays as it passed, so that another fault,
  /// which `keep` has no part in, does not come in.
  enum class Rest { bare, passed };
  std::optional<cover::Row> row(Mask keep, std::optional<int> without, Rest rest,
                                cover::Random& random);

 private:
  cover::Cells cells_of(Mask mask) const;
  bool solve(const cover::Cells& cells, const std::vector<int>& liking);
  /// Values of the parameter other than the failing row's, liked ones more probably first.
  std::vector<int> other_values(int parameter, cover::Random& random) const;

  const cover::Model& model_;
  cover::Oracle oracle_;
  cover::Row failing_;
  std::vector<std::vector<int>> bits_;
  std::vector<int> fixed_;
  bool shared_ = false;
  std::vector<cover::Row> passed_;
  std::vector<std::vector<int>> liked_;  // by parameter and value: how many rows passed with it
  std::map<Mask, Mask> closures_;
};

}  // namespace graphproof::shrink
