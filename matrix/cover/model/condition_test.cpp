#include "matrix/cover/model/condition.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <functional>

#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/random.h"

namespace graphproof::cover {
namespace {

Model booleans(int count, int values = 2) {
  Model model;
  for (int at = 0; at < count; ++at) {
    Parameter parameter{.name = "p" + std::to_string(at)};
    for (int value = 0; value < values; ++value)
      parameter.values.push_back(Value{.names = {std::to_string(value)}});
    model.parameters.push_back(std::move(parameter));
  }
  return model;
}

Condition random_condition(Random& random, const Model& model, int depth) {
  const int kind = depth == 0 ? 0 : random.below(4);
  if (kind == 0) {
    const int first = random.below(static_cast<int>(model.parameters.size()));
    const int second = random.below(static_cast<int>(model.parameters.size()));
    std::vector<int> parameters{std::min(first, second)};
    if (first != second) parameters.push_back(std::max(first, second));
    std::size_t entries = 1;
    for (const int parameter : parameters)
      entries *= model.parameters[static_cast<std::size_t>(parameter)].values.size();
    std::vector<char> table(entries);
    for (char& entry : table) entry = static_cast<char>(random.below(2));
    return Condition::leaf(parameters, table);
  }
  if (kind == 1) return Condition::no(random_condition(random, model, depth - 1));
  std::vector<Condition> parts;
  for (int part = random.below(3); part >= 0; --part)
    parts.push_back(random_condition(random, model, depth - 1));
  return kind == 2 ? Condition::all_of(std::move(parts)) : Condition::any_of(std::move(parts));
}

bool holds(const Condition& condition, const Model& model, const Row& row) {
  switch (condition.kind) {
    case Condition::Kind::not_:
      return !holds(condition.parts[0], model, row);
    case Condition::Kind::all:
      for (const Condition& part : condition.parts)
        if (!holds(part, model, row)) return false;
      return true;
    case Condition::Kind::any:
      for (const Condition& part : condition.parts)
        if (holds(part, model, row)) return true;
      return false;
    case Condition::Kind::leaf:
      break;
  }
  std::size_t entry = 0;
  for (const int parameter : condition.parameters)
    entry = entry * model.parameters[static_cast<std::size_t>(parameter)].values.size() +
            static_cast<std::size_t>(row[static_cast<std::size_t>(parameter)]);
  return condition.table[entry];
}

TEST(ConditionTest, ClausesHaveTheRowsOfTheCondition) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    const Model bare = booleans(4, 2 + random.below(2));
    const Condition condition = random_condition(random, bare, 4);
    Model model = bare;
    add_constraint(model, "c", condition);
    Oracle oracle(model);
    Row row(4, 0);
    const int values = static_cast<int>(bare.parameters[0].values.size());
    for (bool more = true; more;) {
      Cells cells;
      for (int at = 0; at < 4; ++at) cells.push_back({at, row[static_cast<std::size_t>(at)]});
      RC_ASSERT(oracle.solve(cells) == holds(condition, bare, row));
      more = false;
      for (int& value : row) {
        if (++value < values) {
          more = true;
          break;
        }
        value = 0;
      }
    }
  }));
}

TEST(ConditionTest, ADisjunctionOfManyConjunctionsStaysSmallByHiddenParameters) {
  // (a0 and b0) or (a1 and b1) or ... would have 2^16 clauses if it were multiplied out.
  constexpr int kPairs = 16;
  Model model = booleans(2 * kPairs);
  std::vector<Condition> any;
  for (int pair = 0; pair < kPairs; ++pair)
    any.push_back(Condition::all_of(
        {Condition::leaf({2 * pair}, {0, 1}), Condition::leaf({2 * pair + 1}, {0, 1})}));
  add_constraint(model, "c", Condition::any_of(any));
  EXPECT_LT(model.constraints[0].clauses.size(), 2000u);
  EXPECT_EQ(model.visible_count(), 2 * kPairs);
  EXPECT_GT(model.parameters.size(), static_cast<std::size_t>(2 * kPairs));
  Oracle oracle(model);
  Cells none;
  for (int pair = 0; pair < kPairs; ++pair) none.push_back({2 * pair, 0});
  EXPECT_FALSE(oracle.solve(none));
  none[5].value = 1;
  EXPECT_TRUE(oracle.solve(none));
  EXPECT_EQ(oracle.row()[11], 1);
}

}  // namespace
}  // namespace graphproof::cover
