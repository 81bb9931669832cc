// All valid rows of a model: how many there are, every one of them in order, some of them by
// chance. For plans that want the whole product, or a fair sample of it, where a covering array
// (cover.h) wants few rows.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "matrix/cover/model/diagram.h"
#include "matrix/cover/model/model.h"

namespace graphproof::cover {

/// A number of rows. Where the diagram would grow too large some constraints are left out of the
/// counting, and the number is a bound: there are no more than so many.
struct RowCount {
  long double rows = 0;
  bool exact = true;

  /// "42817912000", "at most 6e+12"; beyond 2^63 "about 1.234e+45".
  std::string text() const;
  nlohmann::json json() const;  // a whole number where it is one and known
};

/// Diagram steps that a product may take: about half a second.
constexpr std::int64_t kProductSteps = std::int64_t{1} << 24;

class Product {
 public:
  /// REQUIRES: check_model(model) passes, and the model outlives the product. Memory is bounded by
  /// `steps`.
  explicit Product(const Model& model, std::int64_t steps = kProductSteps);
  ~Product();
  Product(Product&&) noexcept;

  RowCount raw() const;  // before any constraint
  RowCount valid() const;
  /// Of each constraint: the rows that it is the first of all to forbid.
  const std::vector<RowCount>& removed() const { return removed_; }

  /// Of each parameter: which values stand in some valid row; where valid() is a bound, these and
  /// perhaps others.
  std::vector<std::vector<char>> held() const;

  /// Calls `visit` for every valid row, in odometer order: the last parameter turns fastest. Memory
  /// does not grow with the rows; where valid() is exact, neither does the time between two of
  /// them.
  void for_each(const std::function<void(const Row&)>& visit) const;

  /// `size` different valid rows, each set of them as likely as another; all rows where there are
  /// no more. In order of drawing, unless most rows are drawn. Throws InputError where valid() is
  /// no more than a bound and valid rows are too rare to be met by chance.
  std::vector<Row> sample(std::size_t size, std::uint64_t seed) const;

  /// The first valid row in odometer order that has these cells.
  std::optional<Row> first(std::span<const Cell> cells) const;

 private:
  struct Built;

  const Model* model_;
  std::unique_ptr<Built> given_;   // levels in the parameters' order
  std::unique_ptr<Built> chosen_;  // another order, where the given one left constraints out
  std::vector<RowCount> removed_;
  const Built& counted() const { return chosen_ ? *chosen_ : *given_; }
};

}  // namespace graphproof::cover
