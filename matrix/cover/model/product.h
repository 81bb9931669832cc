// All valid rows of a model: counts them, or goes through them in order. This is for plans that
// want the whole product; a covering array (cover.h) has few rows instead, and draw.h draws some.
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

/// A number of rows. Where the diagram would grow too large, some constraints are left out of the
/// count, and the number is an upper bound.
struct RowCount {
  long double rows = 0;
  bool exact = true;

  /// "42817912000", "at most 6e+12"; beyond 2^63 "about 1.234e+45".
  std::string text() const;
  /// An integer below 2^63, from there on a floating-point number.
  nlohmann::json json() const;
};

/// The diagram steps that a product may take, about half a second.
constexpr std::int64_t kProductSteps = std::int64_t{1} << 24;

/// The valid rows of one model.
class Product {
 public:
  /// REQUIRES: check_model(model) passes, and the model outlives the product. Memory is bounded by
  /// `steps`.
  explicit Product(const Model& model, std::int64_t steps = kProductSteps);
  ~Product();
  Product(Product&&) noexcept;

  /// The rows without any constraint.
  RowCount raw() const;
  RowCount valid() const;
  /// For each constraint: how many rows it forbids and no earlier constraint does.
  const std::vector<RowCount>& removed() const { return removed_; }

  /// For each parameter and value whether some valid row has it. If valid() is only a bound, a
  /// value that no valid row has may be marked too.
  std::vector<std::vector<char>> held() const;

  /// Calls `visit` for every valid row, in odometer order: the last parameter changes fastest. The
  /// memory does not depend on the number of rows; nor does the time between two rows, if valid()
  /// is exact.
  void for_each(const std::function<void(const Row&)>& visit) const;

  /// The first valid row in odometer order that has these cells.
  std::optional<Row> first(std::span<const Cell> cells) const;

 private:
  struct Built;

  const Model* model_;
  std::unique_ptr<Built> given_;  // its levels are the parameters in their order
  /// With another order of the parameters, if constraints did not fit into given_.
  std::unique_ptr<Built> chosen_;
  std::vector<RowCount> removed_;
  const Built& counted() const { return chosen_ ? *chosen_ : *given_; }
};

}  // namespace graphproof::cover
