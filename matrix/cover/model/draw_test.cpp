#include "matrix/cover/model/draw.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <set>

#include "matrix/cover/model/product.h"

namespace graphproof::cover {
namespace {

/// A model without constraints.
Model free_model(const std::vector<int>& sizes) {
  Model model;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Parameter parameter{.name = "p" + std::to_string(i), .values = {}};
    for (int value = 0; value < sizes[i]; ++value)
      parameter.values.push_back({.names = {std::to_string(value)}});
    model.parameters.push_back(std::move(parameter));
  }
  return model;
}

std::set<Row> all_rows(const Model& model) {
  std::set<Row> rows;
  Product(model).for_each([&](const Row& row) { rows.insert(row); });
  return rows;
}

TEST(DrawRows, ADrawOfMoreThanThereAreIsEveryValidRowOnce) {
  EXPECT_TRUE(rc::check("as walked", [] {
    std::vector<int> sizes;
    for (int i = *rc::gen::inRange(1, 6); i > 0; --i) sizes.push_back(*rc::gen::inRange(1, 5));
    Model model = free_model(sizes);
    for (int i = *rc::gen::inRange(0, 5); i > 0; --i) {
      Clause clause;
      for (int j = *rc::gen::inRange(1, 4); j > 0; --j) {
        const auto parameter = *rc::gen::inRange<std::size_t>(0, sizes.size());
        clause.push_back({static_cast<int>(parameter), *rc::gen::inRange(0, sizes[parameter]),
                          *rc::gen::arbitrary<bool>()});
      }
      model.constraints.push_back({"c" + std::to_string(i), {clause}});
    }
    const std::set<Row> valid = all_rows(model);
    const std::vector<Row> drawn = draw_rows(model, valid.size() + 1, 7);
    RC_ASSERT(drawn.size() == valid.size());
    RC_ASSERT(std::set<Row>(drawn.begin(), drawn.end()) == valid);
  }));
}

TEST(DrawRows, OneSeedGivesTheSameRowsAndNoneTwice) {
  Model model = free_model(std::vector<int>(20, 3));
  model.constraints.push_back({"a", {{{0, 0, true}, {19, 2, true}}}});
  const std::vector<Row> rows = draw_rows(model, 300, 5);
  EXPECT_EQ(rows, draw_rows(model, 300, 5));
  EXPECT_NE(rows, draw_rows(model, 300, 6));
  EXPECT_EQ(std::set<Row>(rows.begin(), rows.end()).size(), 300u);
  for (const Row& row : rows) EXPECT_TRUE(row[0] == 0 || row[19] == 2);
}

// One of 2^30 rows has value 1 of the first parameter: it demands value 1 of all others. Drawn
// evenly it would never occur; here it comes first in every 62nd row on average.
TEST(DrawRows, AValueThatHardlyAnyRowHasIsDrawn) {
  Model model = free_model(std::vector<int>(31, 2));
  Constraint rare{"rare", {}};
  for (int other = 1; other < 31; ++other)
    rare.clauses.push_back({{0, 1, false}, {other, 1, true}});
  model.constraints.push_back(rare);
  const std::vector<Row> rows = draw_rows(model, 400, 1);
  EXPECT_EQ(std::ranges::count(rows, Row(31, 1)), 1) << "there is a single such row";
}

// Of 6,000 rows each value is expected 2,000 times, with a standard deviation of 37.
TEST(DrawRows, AFreeParameterHasItsValuesByWeight) {
  Model model = free_model(std::vector<int>(20, 3));
  model.constraints.push_back({"a", {{{0, 0, true}, {1, 2, true}}}});
  model.parameters[19].values[2].weight = 4;
  std::array<int, 3> even{}, weighted{};
  for (const Row& row : draw_rows(model, 6000, 3)) {
    ++even[static_cast<std::size_t>(row[18])];
    ++weighted[static_cast<std::size_t>(row[19])];
  }
  for (const int times : even) EXPECT_NEAR(times, 2000, 5 * 37);
  EXPECT_NEAR(weighted[2], 4000, 5 * 37) << "four of six";
}

TEST(DrawRows, HiddenParametersAreInNoRow) {
  Model model = free_model({3, 3});
  model.parameters.push_back(
      {.name = "hidden", .values = {{.names = {"false"}}, {.names = {"true"}}}, .hidden = true});
  // hidden implies p0 == 0; hidden or p1 == 1.
  model.constraints.push_back({"c", {{{2, 1, false}, {0, 0, true}}, {{2, 1, true}, {1, 1, true}}}});
  const std::vector<Row> drawn = draw_rows(model, 100, 1);
  EXPECT_EQ(std::set<Row>(drawn.begin(), drawn.end()),
            (std::set<Row>{{0, 0}, {0, 1}, {0, 2}, {1, 1}, {2, 1}}));
  EXPECT_EQ(drawn.size(), 5u);
}

TEST(DrawRows, AContradictionHasNoRow) {
  Model model = free_model({2, 2});
  model.constraints.push_back({"a", {{{0, 0, true}}}});
  model.constraints.push_back({"b", {{{0, 1, true}}}});
  EXPECT_TRUE(draw_rows(model, 3, 1).empty());
}

}  // namespace
}  // namespace graphproof::cover
