#include "matrix/cover/cover.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <set>
#include <stdexcept>

#include "matrix/cover/files/model_file.h"
#include "matrix/cover/files/pict_model.h"
#include "matrix/cover/model/condition.h"
#include "matrix/cover/model/oracle.h"
#include "matrix/cover/model/random.h"
#include "matrix/cover/verify.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

Model uniform(int parameters, int values) {
  Model model;
  for (int at = 0; at < parameters; ++at) {
    Parameter parameter{.name = "p" + std::to_string(at)};
    for (int value = 0; value < values; ++value)
      parameter.values.push_back(Value{.names = {std::to_string(value)}});
    model.parameters.push_back(std::move(parameter));
  }
  return model;
}

std::vector<Row> cells_of(const Result& result) {
  std::vector<Row> rows;
  for (const PlannedRow& row : result.rows) rows.push_back(row.cells);
  return rows;
}

/// Up to six parameters of up to four values, clauses of one to three literals.
Model random_model(Random& random) {
  Model model = uniform(2 + random.below(5), 2);
  for (Parameter& parameter : model.parameters)
    for (int more = random.below(3); more > 0; --more)
      parameter.values.push_back(Value{.names = {std::to_string(parameter.values.size())}});
  for (int count = random.below(9); count > 0; --count) {
    Clause clause;
    for (int literals = 1 + random.below(3); literals > 0; --literals) {
      const int parameter = random.below(static_cast<int>(model.parameters.size()));
      const int value = random.below(
          static_cast<int>(model.parameters[static_cast<std::size_t>(parameter)].values.size()));
      clause.push_back({parameter, value, random.below(4) == 0});
    }
    model.constraints.push_back({"C" + std::to_string(model.constraints.size()), {clause}});
  }
  return model;
}

/// Every valid row, found by trying all rows.
std::vector<Row> all_valid(const Model& model) {
  std::vector<Row> rows;
  Row row(model.parameters.size(), 0);
  for (bool more = true; more;) {
    bool valid = true;
    for (const Constraint& constraint : model.constraints)
      for (const Clause& clause : constraint.clauses)
        valid = valid && std::any_of(clause.begin(), clause.end(), [&](const Literal& literal) {
                  return (row[static_cast<std::size_t>(literal.parameter)] == literal.value) ==
                         literal.equal;
                });
    if (valid) rows.push_back(row);
    more = false;
    for (std::size_t at = 0; at < row.size() && !more; ++at) {
      more = ++row[at] < static_cast<int>(model.parameters[at].values.size());
      if (!more) row[at] = 0;
    }
  }
  return rows;
}

std::set<Cells> combinations(const std::vector<Row>& rows, int strength) {
  std::set<Cells> found;
  for (const Row& row : rows) {
    const unsigned subsets = 1u << row.size();
    for (unsigned subset = 0; subset < subsets; ++subset) {
      if (std::popcount(subset) != strength) continue;
      Cells cells;
      for (std::size_t at = 0; at < row.size(); ++at)
        if (subset >> at & 1) cells.push_back({static_cast<int>(at), row[at]});
      found.insert(cells);
    }
  }
  return found;
}

TEST(CoverTest, CoversExactlyWhatTryingAllRowsFinds) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    const Model model = random_model(random);
    const int strength =
        1 + random.below(std::min<int>(4, static_cast<int>(model.parameters.size())));
    const std::vector<Row> valid = all_valid(model);
    if (valid.empty()) {
      RC_ASSERT_THROWS_AS(cover(model, {.strength = strength}), matrix::InputError);
      return;
    }
    const Result result = cover(model, {.strength = strength, .seed = seed, .steps = 300});
    const std::vector<Row> rows = cells_of(result);
    for (const Row& row : rows)
      RC_ASSERT(std::find(valid.begin(), valid.end(), row) != valid.end());
    const std::set<Cells> wanted = combinations(valid, strength);
    RC_ASSERT(combinations(rows, strength) == wanted);
    RC_ASSERT(result.demands[0].valid == static_cast<double>(wanted.size()));
    RC_ASSERT(static_cast<std::int64_t>(rows.size()) >= result.at_least);
    RC_ASSERT(verify(model, rows, strength).complete());
    // No valid row has what is excluded, and its reason is minimal.
    Oracle oracle(model);
    for (const Cells& cells : result.excluded) {
      RC_ASSERT(!oracle.solve(cells));
      const std::vector<int> reason = oracle.reason(cells);
      for (std::size_t out = 0; out < reason.size(); ++out) {
        Model weaker = model;
        weaker.constraints.clear();
        for (std::size_t at = 0; at < reason.size(); ++at)
          if (at != out)
            weaker.constraints.push_back(model.constraints[static_cast<std::size_t>(reason[at])]);
        Oracle without(weaker);
        RC_ASSERT(without.solve(cells));
      }
    }
  }));
}

TEST(CoverTest, TheVerifierNoticesARemovedRow) {
  EXPECT_TRUE(rc::check([](std::uint64_t seed) {
    Random random(seed);
    const Model model = random_model(random);
    if (all_valid(model).empty()) return;
    const std::vector<Row> rows =
        cells_of(cover(model, {.strength = 2, .seed = seed, .steps = 300}));
    const std::set<Cells> wanted = combinations(rows, 2);
    for (std::size_t out = 0; out < rows.size(); ++out) {
      std::vector<Row> fewer = rows;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(out));
      const auto lost = static_cast<std::int64_t>(wanted.size() - combinations(fewer, 2).size());
      RC_ASSERT(verify(model, fewer, 2).missing_count == lost);
    }
  }));
}

struct Size {
  int parameters, values, strength;
  std::size_t rows;  // the smallest known, from published tables of covering array numbers
};

TEST(CoverTest, SmallArraysReachTheirKnownSizes) {
  const Size sizes[] = {{10, 10, 2, 118}, {6, 5, 2, 25},  {4, 4, 3, 64}, {4, 3, 2, 9},
                        {10, 2, 2, 6},    {13, 3, 2, 15}, {5, 2, 3, 10}, {4, 2, 4, 16},
                        {3, 5, 1, 5},     {6, 2, 6, 64},  {6, 2, 5, 32}};
  for (const Size& size : sizes) {
    const Model model = uniform(size.parameters, size.values);
    const Result result = cover(model, {.strength = size.strength});
    EXPECT_LE(result.rows.size(), size.rows) << size.parameters << " parameters, " << size.values
                                             << " values, strength " << size.strength;
    EXPECT_TRUE(verify(model, cells_of(result), size.strength).complete());
    EXPECT_LE(result.at_least, static_cast<std::int64_t>(result.rows.size()));
  }
}

TEST(CoverTest, OneSeedGivesOnePlanWhateverTheThreads) {
  Random random(7);
  const Model model = uniform(12, 4);
  for (const int searches : {1, 3}) {
    const Options options{
        .strength = 2, .seed = 5, .steps = 3000, .starts = 6, .searches = searches};
    Options threaded = options;
    threaded.threads = 4;
    const Result alone = cover(model, options), again = cover(model, options),
                 shared = cover(model, threaded);
    EXPECT_EQ(cells_of(alone), cells_of(again));
    EXPECT_EQ(cells_of(alone), cells_of(shared));
    EXPECT_EQ(alone.steps, shared.steps);
  }
  EXPECT_NE(cells_of(cover(model, {.seed = 1, .steps = 100})),
            cells_of(cover(model, {.seed = 2, .steps = 100})));
}

TEST(CoverTest, MoreStepsNeverGiveMoreRows) {
  const Model model = uniform(10, 4);
  std::size_t before = cover(model, {.steps = 0}).rows.size();
  for (const std::int64_t steps : {100, 1000, 10000}) {
    const std::size_t now = cover(model, {.steps = steps}).rows.size();
    EXPECT_LE(now, before);
    before = now;
  }
  EXPECT_LT(before, cover(model, {.steps = 0}).rows.size());
}

TEST(CoverTest, StopEndsTheSearchWithACompleteAnswer) {
  const Model model = uniform(10, 4);
  const Result result = cover(model, {.steps = std::int64_t{1} << 60, .stop = [] { return true; }});
  EXPECT_TRUE(verify(model, cells_of(result), 2).complete());
}

TEST(CoverTest, GroupsHaveTheirOwnStrength) {
  Model model = uniform(8, 2);
  model.groups = {{{1, 4, 6, 7}, 4}, {{0, 2, 3}, 3}};
  const Result result = cover(model, {.strength = 2});
  EXPECT_TRUE(verify(model, cells_of(result), 2).complete());
  EXPECT_EQ(result.rows.size(), 16u);
  ASSERT_EQ(result.demands.size(), 3u);
  EXPECT_EQ(result.demands[1].valid, 16);
}

TEST(CoverTest, RequiredRowsAreThereAndStayAsTheyAre) {
  const Model model =
      pict("a: 0, 1, 2\nb: 0, 1, 2\nc: 0, 1, 2\nd: 0, 1, 2\n[a] <> 0 OR [b] <> 0;\n");
  const Options options{
      .strength = 2,
      .required = {{1, 1, kAny, kAny}, {1, 1, 1, 1}, {kAny, kAny, kAny, kAny}, {1, 1, 1, 1}}};
  const Result result = cover(model, options);
  for (std::size_t at = 0; at < options.required.size(); ++at) {
    EXPECT_EQ(result.rows[at].origin, Origin::required);
    EXPECT_EQ(result.rows[at].index, static_cast<int>(at));
    for (std::size_t column = 0; column < 4; ++column)
      if (options.required[at][column] != kAny) {
        EXPECT_EQ(result.rows[at].cells[column], options.required[at][column]);
      }
  }
  EXPECT_TRUE(verify(model, cells_of(result), 2).complete());
}

TEST(CoverTest, ARequiredRowThatNothingCompletesIsRefusedByItsReason) {
  const Model model = pict(
      "a: 0, 1\nb: 0, 1\nc: 0, 1\n[c] = 0;\nIF [a] = 1 THEN [b] = 1;\nIF [b] = 1 THEN [c] = 1;\n");
  try {
    cover(model, {.required = {{0, 0, 0}, {1, kAny, kAny}}});
    FAIL();
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "required row 2 is in no valid row");
    EXPECT_EQ(error.problem().why, "it breaks line 4, line 5, line 6");
  }
}

TEST(CoverTest, AnEarlierPlanIsKeptRepairedAndExtended) {
  const Model before =
      pict("a: 0, 1, 2, 3, 4, 5, 6\nb: 0, 1, 2, 3, 4, 5, 6\nc: 0, 1, 2\nd: 0, 1\n");
  const std::vector<Row> plan = cells_of(cover(before, {}));
  // The same model with one more value and one more constraint.
  const Model after = pict(
      "a: 0, 1, 2, 3, 4, 5, 6, 7\nb: 0, 1, 2, 3, 4, 5, 6\nc: 0, 1, 2\nd: 0, 1\nIF [a] = 0 THEN [b] "
      "<> 0;\n");
  const Result result = cover(after, {.previous = plan});
  EXPECT_TRUE(verify(after, cells_of(result), 2).complete());
  std::size_t kept = 0, repaired = 0;
  for (const PlannedRow& row : result.rows) {
    if (row.origin != Origin::previous) continue;
    ++kept;
    const Row& old = plan[static_cast<std::size_t>(row.index)];
    int changed = 0;
    for (std::size_t column = 0; column < old.size(); ++column)
      changed += old[column] != row.cells[column] ? 1 : 0;
    EXPECT_EQ(changed, row.changed_cells);
    EXPECT_EQ(changed, old[0] == 0 && old[1] == 0 ? 1 : 0);
    repaired += changed > 0 ? 1 : 0;
  }
  EXPECT_EQ(kept, plan.size());
  EXPECT_EQ(repaired, 1u);
  EXPECT_TRUE(result.dropped.empty());
  EXPECT_LE(result.rows.size(), plan.size() + 7);
}

// Without a bound, the many rows of an earlier, larger plan would be kept for ever.
TEST(CoverTest, AnExtendedPlanIsAtMostThreePercentLargerThanAFreshOne) {
  const Model before = uniform(6, 4), after = uniform(6, 3);
  std::vector<Row> plan;
  for (Row& row : cells_of(cover(before, {})))
    if (std::none_of(row.begin(), row.end(), [](int value) { return value == 3; }))
      plan.push_back(row);
  for (int value = 0; value < 3; ++value)
    for (int other = 0; other < 3; ++other)
      plan.push_back({value, value, value, value, other, other});
  const Result fresh = cover(after, {}), extended = cover(after, {.previous = plan});
  EXPECT_TRUE(verify(after, cells_of(extended), 2).complete());
  EXPECT_LE(extended.rows.size(), fresh.rows.size() + 1) << "3 % of it are less than a row";
  const auto kept =
      std::count_if(extended.rows.begin(), extended.rows.end(),
                    [](const PlannedRow& row) { return row.origin == Origin::previous; });
  EXPECT_EQ(static_cast<std::size_t>(kept) + extended.dropped.size(), plan.size());
}

TEST(CoverTest, ARowThatNeedsMoreThanTwoChangesIsDropped) {
  const Model model = pict("a: 0, 1\nb: 0, 1\nc: 0, 1\nd: 0, 1\n[a] = 0;\n[b] = 0;\n[c] = 0;\n");
  const Result result = cover(model, {.previous = {{1, 1, 1, 0}, {1, 1, 0, 0}}});
  EXPECT_EQ(result.dropped, (std::vector<int>{0}));
  EXPECT_EQ(result.rows[0].changed_cells, 2);
}

TEST(CoverTest, AParameterThatAnEarlierPlanLackedIsFilledUsefully) {
  const Model model = uniform(4, 3);
  std::vector<Row> plan = cells_of(cover(uniform(3, 3), {}));
  for (Row& row : plan) row.push_back(kAny);
  const Result result = cover(model, {.previous = plan});
  EXPECT_TRUE(verify(model, cells_of(result), 2).complete());
  EXPECT_LE(result.rows.size(), plan.size() + 3);
}

TEST(CoverTest, AnOrderOfRowsBeginsWithWhatCoversMost) {
  const Model model = uniform(6, 3);
  const std::vector<Row> rows = cells_of(cover(model, {}));
  std::size_t before = 1000, covered = 0;
  for (std::size_t count = 1; count <= rows.size(); ++count) {
    const std::size_t now =
        combinations({rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(count)}, 2).size();
    EXPECT_LE(now - covered, before);
    before = now - covered;
    covered = now;
  }
}

double cost_of_first(const Row& row) { return row[0] == 0 ? 8 : row[0] == 1 ? 4 : 1; }

TEST(CoverTest, WithACostTheTotalBecomesSmall) {
  Model model = uniform(5, 2);
  model.parameters.insert(model.parameters.begin(), uniform(1, 3).parameters[0]);
  const Result plain = cover(model, {});
  const Result cheap = cover(model, {.cost = cost_of_first});
  double plain_cost = 0, cost = 0;
  for (const PlannedRow& row : plain.rows) plain_cost += cost_of_first(row.cells);
  for (const PlannedRow& row : cheap.rows) cost += cost_of_first(row.cells);
  EXPECT_TRUE(verify(model, cells_of(cheap), 2).complete());
  EXPECT_DOUBLE_EQ(cost, cheap.cost);
  EXPECT_LE(cost, plain_cost);
  // Each expensive value needs as many rows as the other parameters have values, and no more.
  EXPECT_LE(cost, 2 * 8 + 2 * 4 + 8);
}

TEST(CoverTest, NegativeValuesComeOneAtATimeAndHideNothing) {
  const Model model = pict(
      "a: 0, 1, ~x\nb: 0, 1, 2\nc: 0, 1, ~y, ~z\n{ a, b, c } @ 3\n[a] <> 1 OR [c] <> \"z\";\n");
  const Result result = cover(model, {.required = {{2, 1, kAny}}});
  EXPECT_TRUE(verify(model, cells_of(result), 2).complete());
  for (const PlannedRow& row : result.rows) EXPECT_FALSE(row.cells[0] == 2 && row.cells[2] >= 2);
  EXPECT_TRUE(std::any_of(result.rows.begin(), result.rows.end(), [](const PlannedRow& row) {
    return row.origin == Origin::required && row.cells[0] == 2 && row.cells[1] == 1;
  }));
  EXPECT_EQ(result.excluded, (std::vector<Cells>{{{0, 1}, {2, 3}}}));
}

TEST(CoverTest, ContradictoryConstraintsAreNamedAndNoOthers) {
  const Model model = pict(
      "a: 0, 1\nb: 0, 1\nc: 0, 1\n[c] = 0;\nIF [a] = 0 THEN [b] = 1;\n[a] = 0;\n[c] <> 1;\n[b] = "
      "0;\n");
  try {
    cover(model, {});
    FAIL();
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "no row fulfils all constraints");
    EXPECT_EQ(error.problem().got, "line 5, line 6, line 8");
  }
}

TEST(CoverTest, AValueThatNoRowHasIsExcludedByItsConstraints) {
  const Model model = pict(
      "a: 0, 1, 2\nb: 0, 1\nc: 0, 1\nIF [a] = 2 THEN [b] = 1;\n[b] = 0 OR [c] = 1;\n[a] <> 2 OR "
      "[c] <> 1;\n");
  const Result result = cover(model, {});
  EXPECT_TRUE(verify(model, cells_of(result), 2).complete());
  ASSERT_FALSE(result.excluded.empty());
  EXPECT_EQ(result.excluded[0], (Cells{{0, 2}}));
  Oracle oracle(model);
  EXPECT_EQ(oracle.reason(result.excluded[0]), (std::vector<int>{0, 1, 2}));
}

TEST(CoverTest, HiddenParametersDoNotShow) {
  Model model = uniform(34, 2);
  std::vector<Condition> any;
  for (int pair = 0; pair < 16; ++pair)
    any.push_back(Condition::all_of(
        {Condition::leaf({2 * pair}, {0, 1}), Condition::leaf({2 * pair + 1}, {0, 1})}));
  add_constraint(model, "c", Condition::any_of(any));
  ASSERT_GT(model.parameters.size(), 34u);
  const Result result = cover(model, {.steps = 200});
  EXPECT_EQ(result.rows[0].cells.size(), 34u);
  EXPECT_TRUE(verify(model, cells_of(result), 2).complete());
}

TEST(CoverTest, TenThousandValuesTakeBoundedTime) {
  Model model = uniform(4, 3);
  model.parameters[1].values.clear();
  for (int value = 0; value < 10'000; ++value)
    model.parameters[1].values.push_back(Value{.names = {std::to_string(value)}});
  model.constraints.push_back({"c", {{{0, 1, false}, {1, 7777, false}}}});
  const Result result = cover(model, {.steps = 10});
  EXPECT_EQ(result.rows.size(), 30'000u);
  EXPECT_EQ(result.at_least, 30'000);
}

TEST(CoverTest, WhatWouldNotFitTheMemoryIsRefused) {
  try {
    cover(uniform(400, 4), {.strength = 6});
    FAIL();
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "the model is too large for this strength");
  }
  try {
    cover(uniform(2, 10'000), {.strength = 2});
    FAIL();
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "the answer has too many rows");
    EXPECT_EQ(error.problem().got, "100000000 or more");
  }
}

TEST(CoverTest, AMillionValuesAreRefusedAtOnce) {
  try {
    cover(uniform(1, 1'000'000), {});
    FAIL();
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().what, "the model has too many values");
    EXPECT_EQ(error.problem().got, "1000000");
  }
}

TEST(CoverTest, WhatACostThrowsReachesTheCallerFromAnyThread) {
  const auto never = [](const Row& row) -> double {
    throw std::runtime_error("no cost for " + std::to_string(row[0]));
  };
  for (const int threads : {1, 4})
    EXPECT_THROW(cover(uniform(5, 3), {.starts = 4, .threads = threads, .cost = never}),
                 std::runtime_error);
}

TEST(CoverTest, OptionsOutOfRangeAreRefused) {
  const Model model = uniform(3, 2);
  const std::pair<Options, const char*> refused[] = {
      {{.strength = 0}, "the strength is out of range"},
      {{.strength = 7}, "the strength is out of range"},
      {{.threads = 0}, "threads and searches are 1 or more"},
      {{.required = {{0, 0}}}, "required row 1 has the wrong number of cells"},
      {{.previous = {{0, 0, 5}}}, "previous row 1 has a value that `p2` does not"},
  };
  for (const auto& [options, what] : refused) {
    try {
      cover(model, options);
      ADD_FAILURE() << what;
    } catch (const matrix::InputError& error) {
      EXPECT_EQ(error.problem().what, what);
    }
  }
}

TEST(CoverTest, AStrengthAboveTheNumberOfParametersIsTheFullProduct) {
  EXPECT_EQ(cover(uniform(3, 2), {.strength = 6}).rows.size(), 8u);
}

}  // namespace
}  // namespace graphproof::cover
