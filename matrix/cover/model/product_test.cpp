#include "matrix/cover/model/product.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "matrix/cover/model/oracle.h"

namespace graphproof::cover {
namespace {

Model model_of(const std::vector<int>& sizes) {
  Model model;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Parameter parameter{.name = "p" + std::to_string(i), .values = {}};
    for (int value = 0; value < sizes[i]; ++value)
      parameter.values.push_back({.names = {std::to_string(value)}});
    model.parameters.push_back(std::move(parameter));
  }
  return model;
}

Model random_model() {
  const int parameters = *rc::gen::inRange(1, 7);
  std::vector<int> sizes;
  for (int i = 0; i < parameters; ++i) sizes.push_back(*rc::gen::inRange(1, 5));
  Model model = model_of(sizes);
  const int constraints = *rc::gen::inRange(0, 5);
  for (int i = 0; i < constraints; ++i) {
    Constraint constraint{"c" + std::to_string(i), {}};
    const int clauses = *rc::gen::inRange(1, 4);
    for (int j = 0; j < clauses; ++j) {
      Clause clause;
      const int literals = *rc::gen::inRange(1, 4);
      for (int k = 0; k < literals; ++k) {
        const int parameter = *rc::gen::inRange(0, parameters);
        clause.push_back({parameter,
                          *rc::gen::inRange(0, sizes[static_cast<std::size_t>(parameter)]),
                          *rc::gen::arbitrary<bool>()});
      }
      constraint.clauses.push_back(std::move(clause));
    }
    model.constraints.push_back(std::move(constraint));
  }
  return model;
}

bool fulfils(const Constraint& constraint, const Row& row) {
  return std::ranges::all_of(constraint.clauses, [&](const Clause& clause) {
    return std::ranges::any_of(clause, [&](const Literal& literal) {
      return (row[static_cast<std::size_t>(literal.parameter)] == literal.value) == literal.equal;
    });
  });
}

/// The valid rows in odometer order, and for each constraint the number of rows that it is the
/// first to forbid, found by trying all rows.
std::pair<std::vector<Row>, std::vector<long double>> by_hand(const Model& model) {
  std::vector<Row> rows;
  std::vector<long double> removed(model.constraints.size(), 0);
  Row row(model.parameters.size(), 0);
  while (true) {
    const auto first = std::ranges::find_if(
        model.constraints, [&](const Constraint& constraint) { return !fulfils(constraint, row); });
    if (first == model.constraints.end())
      rows.push_back(row);
    else
      removed[static_cast<std::size_t>(first - model.constraints.begin())] += 1;
    std::size_t at = row.size();
    while (at > 0 && ++row[at - 1] == static_cast<int>(model.parameters[at - 1].values.size()))
      row[--at] = 0;
    if (at == 0) return {rows, removed};
  }
}

std::vector<Row> walked(const Product& product) {
  std::vector<Row> rows;
  product.for_each([&](const Row& row) { rows.push_back(row); });
  return rows;
}

TEST(Product, CountsAndRowsAreThoseOfAWalkOverAllRows) {
  EXPECT_TRUE(rc::check("as counted by hand, with all, few or no steps", [] {
    const Model model = random_model();
    const auto [rows, removed] = by_hand(model);
    for (const std::int64_t steps : {kProductSteps, std::int64_t{60}, std::int64_t{0}}) {
      const Product product(model, steps);
      RC_ASSERT(walked(product) == rows);
      if (steps == kProductSteps) RC_ASSERT(product.valid().exact);
      if (product.valid().exact)
        RC_ASSERT(product.valid().rows == static_cast<long double>(rows.size()));
      RC_ASSERT(product.valid().rows >= static_cast<long double>(rows.size()));
      for (std::size_t i = 0; i < removed.size(); ++i)
        if (product.removed()[i].exact) RC_ASSERT(product.removed()[i].rows == removed[i]);
      for (std::size_t i = 0; i < model.parameters.size(); ++i)
        for (std::size_t value = 0; value < model.parameters[i].values.size(); ++value) {
          const bool held = std::ranges::any_of(
              rows, [&](const Row& row) { return row[i] == static_cast<int>(value); });
          if (product.valid().exact || held) RC_ASSERT((product.held()[i][value] != 0) == held);
        }
    }
  }));
}

TEST(Product, FirstRowWithGivenCellsIsTheFirstOfTheWalk) {
  EXPECT_TRUE(rc::check("first equals a search through the rows", [] {
    const Model model = random_model();
    const auto rows = by_hand(model).first;
    const int parameter = *rc::gen::inRange(0, static_cast<int>(model.parameters.size()));
    const Cell cell{
        parameter,
        *rc::gen::inRange(
            0,
            static_cast<int>(model.parameters[static_cast<std::size_t>(parameter)].values.size()))};
    const auto wanted = std::ranges::find_if(rows, [&](const Row& row) {
      return row[static_cast<std::size_t>(cell.parameter)] == cell.value;
    });
    for (const std::int64_t steps : {kProductSteps, std::int64_t{0}}) {
      const auto found = Product(model, steps).first(std::vector{cell});
      RC_ASSERT(found.has_value() == (wanted != rows.end()));
      if (found) RC_ASSERT(*found == *wanted);
    }
  }));
}

TEST(Product, HiddenParametersDoNotMultiplyRows) {
  Model model = model_of({3, 3});
  model.parameters.push_back(
      {.name = "hidden", .values = {{.names = {"false"}}, {.names = {"true"}}}, .hidden = true});
  // hidden implies p0 == 0; hidden or p1 == 1: rows with p1 == 1, and those with p0 == 0.
  model.constraints.push_back({"c", {{{2, 1, false}, {0, 0, true}}, {{2, 1, true}, {1, 1, true}}}});
  for (const std::int64_t steps : {kProductSteps, std::int64_t{0}}) {
    const Product product(model, steps);
    EXPECT_EQ(walked(product), (std::vector<Row>{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {2, 1}}));
  }
  EXPECT_EQ(Product(model).valid().rows, 5);
}

TEST(Product, NegativeValuesStandAlone) {
  Model model = model_of({2, 2, 2});
  for (Parameter& parameter : model.parameters) parameter.values[1].negative = true;
  EXPECT_EQ(walked(Product(model)), (std::vector<Row>{{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 0, 0}}));
}

TEST(Product, NumbersBeyondSixtyFourBitsAreRoundedAndMarked) {
  EXPECT_EQ(Product(model_of(std::vector<int>(62, 2))).valid().text(), "4611686018427387904");
  EXPECT_EQ(Product(model_of(std::vector<int>(200, 2))).valid().text(), "about 1.607e+60");
  EXPECT_EQ((RowCount{1234, false}.text()), "at most 1234");
  // The count is exact although the product is huge, because all but two parameters are fixed.
  Model model = model_of(std::vector<int>(100, 3));
  for (int parameter = 2; parameter < 100; ++parameter)
    model.constraints.push_back({"c", {{{parameter, 1, true}}}});
  EXPECT_EQ(Product(model).valid().text(), "9");
}

TEST(Product, ContradictionHasNoRow) {
  Model model = model_of({2, 2});
  model.constraints.push_back({"a", {{{0, 0, true}}}});
  model.constraints.push_back({"b", {{{0, 1, true}}}});
  const Product product(model);
  EXPECT_EQ(product.valid().rows, 0);
  EXPECT_TRUE(walked(product).empty());
  EXPECT_FALSE(product.first({}).has_value());
}

}  // namespace
}  // namespace graphproof::cover
