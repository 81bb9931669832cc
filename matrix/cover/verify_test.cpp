#include "matrix/cover/verify.h"

#include <gtest/gtest.h>

#include "matrix/cover/files/model_file.h"
#include "matrix/cover/files/pict_model.h"
#include "matrix/input/input_error.h"

namespace graphproof::cover {
namespace {

TEST(VerifyTest, AMissingCombinationIsNamed) {
  const Model model = pict("a: 0, 1\nb: 0, 1\nc: 0, 1\n");
  const std::vector<Row> rows{{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}};
  EXPECT_TRUE(verify(model, rows, 2).complete());
  const Verification found = verify(model, {rows[0], rows[1], rows[2]}, 2);
  EXPECT_EQ(found.missing_count, 3);
  EXPECT_EQ(found.missing[0], (Cells{{0, 1}, {1, 1}}));
  EXPECT_EQ(found.raw, 12);
  EXPECT_EQ(found.reachable, 12);
}

TEST(VerifyTest, AnInvalidRowIsNamedWithItsConstraintAndCoversNothing) {
  const Model model = pict("a: 0, 1\nb: 0, 1\n\nIF [a] = 1 THEN [b] = 1;\n");
  const Verification found = verify(model, {{0, 0}, {0, 1}, {1, 0}}, 2);
  ASSERT_EQ(found.invalid_count, 1);
  EXPECT_EQ(found.invalid[0].index, 2u);
  EXPECT_EQ(found.invalid[0].broken, (std::vector<std::string>{"line 4"}));
  EXPECT_EQ(found.missing, (std::vector<Cells>{{{0, 1}, {1, 1}}}));
  EXPECT_EQ(found.reachable, 3);
}

TEST(VerifyTest, WhatNoValidRowHasIsNotMissing) {
  // a=1 excludes c=1 only by way of b.
  const Model model =
      pict("a: 0, 1\nb: 0, 1\nc: 0, 1\nIF [a] = 1 THEN [b] = 1;\nIF [b] = 1 THEN [c] = 0;\n");
  EXPECT_TRUE(verify(model, {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 1, 0}}, 2).complete());
  EXPECT_TRUE(verify(model, {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {1, 1, 0}}, 3).complete());
}

TEST(VerifyTest, OrdinaryValuesHaveToMeetWithoutANegativeOne) {
  const Model model = pict("a: 0, 1\nb: 0, 1\nc: 0, ~bad\n");
  std::vector<Row> rows{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}, {1, 1, 1}, {0, 0, 1}};
  const Verification found = verify(model, rows, 2);
  EXPECT_EQ(found.missing, (std::vector<Cells>{{{0, 1}, {1, 1}}}));
  rows.push_back({1, 1, 0});
  EXPECT_TRUE(verify(model, rows, 2).complete());
}

TEST(VerifyTest, TwoNegativeValuesInARowAreInvalid) {
  const Model model = pict("a: 0, ~x\nb: 0, ~y\n");
  const Verification found = verify(model, {{0, 0}, {0, 1}, {1, 0}, {1, 1}}, 2);
  EXPECT_EQ(found.invalid_count, 1);
  EXPECT_TRUE(found.invalid[0].broken.empty());
  EXPECT_EQ(found.missing_count, 0);
}

TEST(VerifyTest, AGroupAsksForItsOwnStrength) {
  const Model model = pict("a: 0, 1\nb: 0, 1\nc: 0, 1\n{ a, b, c } @ 3\n");
  EXPECT_EQ(verify(model, {{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 1, 0}}, 2).missing_count, 4);
}

TEST(VerifyTest, StrengthOutOfRangeIsRefused) {
  try {
    verify(pict("a: 0, 1\n"), {}, 7);
    FAIL();
  } catch (const matrix::InputError& error) {
    EXPECT_EQ(error.problem().want, "1 to 6");
  }
}

}  // namespace
}  // namespace graphproof::cover
