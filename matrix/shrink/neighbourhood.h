// The valid rows around one failing row. It knows which axes can change and which values the rules
// tie together, and makes rows that keep some values and change as much of the rest as the rules
// allow.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "matrix/cover/model/model.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/random.h"
#include "matrix/shrink/candidates.h"

namespace graphproof::shrink {

/// The neighbourhood of one failing row.
class Neighbourhood {
 public:
  /// Each of `parameters` that can change gets a bit, in order; if there are more than kMostBits,
  /// neighbouring parameters share one. REQUIRES: `failing` is a valid row of the model, which
  /// outlives this.
  Neighbourhood(const cover::Model& model, cover::Row failing, const std::vector<int>& parameters);

  const cover::Row& failing() const { return failing_; }
  /// The parameters of each bit. A row has a bit if all of these equal the failing row.
  const std::vector<std::vector<int>>& bits() const { return bits_; }
  /// The parameters, of those given, that have the same value in every valid row.
  const std::vector<int>& fixed() const { return fixed_; }
  /// Whether some bit stands for several parameters.
  bool shared() const { return shared_; }

  /// The bits that a row has. kAny differs from every value.
  Mask mask(const cover::Row& row) const;
  /// The parameters of these bits, in order.
  std::vector<int> parameters(Mask mask) const;

  /// The bits that all valid rows with `mask` have. Two masks with the same closure are the same
  /// condition.
  Mask closure(Mask mask);

  /// Notes that a row passed: rows that are made from now on prefer its values.
  void add_passed(const cover::Row& row);

  /// What becomes of the values of a row that are neither kept nor changed on purpose. They come
  /// from a row that passed, if there is one. `bare` also changes those that equal the failing row,
  /// as far as the rules allow, so that the row has little of the failing row but the kept values.
  /// `passed` leaves them as they passed, so that they bring no second fault into the row.
  enum class Rest { bare, passed };
  /// A valid row that keeps the values of `keep` and, if given, lacks bit `without`; nothing if no
  /// valid row does both.
  std::optional<cover::Row> row(Mask keep, std::optional<int> without, Rest rest,
                                cover::Random& random);

 private:
  cover::Cells cells_of(Mask mask) const;
  bool solve(const cover::Cells& cells, const std::vector<int>& preferred);
  /// The values of the parameter except the failing row's, in a random order in which values that
  /// passed more often tend to come first.
  std::vector<int> other_values(int parameter, cover::Random& random) const;

  const cover::Model& model_;
  cover::Oracle oracle_;
  cover::Row failing_;
  std::vector<std::vector<int>> bits_;
  std::vector<int> fixed_;
  bool shared_ = false;
  std::vector<cover::Row> passed_;
  std::vector<std::vector<int>> passes_;  // by parameter and value: how many rows passed with it
  std::map<Mask, Mask> closures_;
};

}  // namespace graphproof::shrink
