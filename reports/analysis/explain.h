// What a set of cases has in common that other cases do not have, as a condition on axes.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/outcome/run_result.h"

namespace graphproof::reports {

/// A condition that distinguishes the cases of a set from other cases.
struct Explanation {
  /// In the expression language: "allocator == expandable and placement == per_rank". Empty if
  /// nothing distinguishes the cases.
  std::string expression;
  int inside = 0;   // cases of the set for which it holds
  int outside = 0;  // other cases for which it holds too
  int others = 0;   // all other cases
};

/// Whether an explanation has to hold for every case of the set, or may leave out a few where it
/// then says more: a set of cases that became slower has some that did so by chance.
enum class HoldsFor { all, most };

/// The values of all axes in some cases. Many sets of these cases can be explained with it.
class AxisValues {
 public:
  explicit AxisValues(const std::vector<const CaseResult*>& cases);

  /// Conditions are added as long as the explanation becomes wrong about fewer cases, the one that
  /// mends the most first, at most six, because people have to read it. With HoldsFor::most an
  /// explanation that is wrong about as many cases as the set has is left out. `set` and `others`:
  /// indexes of cases, without one that is in both.
  Explanation explain(const std::vector<std::size_t>& set, const std::vector<std::size_t>& others,
                      HoldsFor holds_for) const;

 private:
  struct Column {
    std::string axis;
    std::vector<nlohmann::json> values;  // the first is null: the case lacks the axis
    std::vector<std::size_t> of;         // by case: an index of `values`
  };
  struct Condition;

  std::vector<Condition> candidates(const std::vector<std::size_t>& set,
                                    const std::vector<std::size_t>& others,
                                    HoldsFor holds_for) const;

  std::vector<Column> columns_;  // by name of the axis
};

/// `value` of an axis as the expression language writes it: a string that is no word is quoted.
std::string literal(const nlohmann::json& value);

}  // namespace graphproof::reports
