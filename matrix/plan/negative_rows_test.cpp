#include "matrix/plan/negative_rows.h"

#include <gtest/gtest.h>

#include "matrix/case/case.h"
#include "matrix/catalogue/rules.h"

namespace graphproof::matrix {
namespace {

class NegativeRowsTest : public testing::Test {
 protected:
  NegativeRows rows_of(const std::string& members) {
    file_ = parse_matrix_file("{\"schema\": \"graphproof-matrix/1\"," + members + "}", "m.json",
                              catalogue_, {});
    return negative_rows(file_, catalogue_, machine_);
  }
  std::vector<std::string> names(const NegativeRows& rows) const {
    std::vector<std::string> result;
    for (const NegativeRow& row : rows.rows)
      result.push_back(case_name(catalogue_.axes, row.test_case) + " " + row.rule);
    return result;
  }

  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
  const Machine machine_{.device = "sim", .slots = 4, .stack = {}};
  MatrixFile file_;
};

TEST_F(NegativeRowsTest, OneRowForEachCombinationThatBreaksItAlone) {
  const NegativeRows rows =
      rows_of(R"("axes": {"impl": ["none", "manual"], "tp": [1, 2], "dropout": [false, true]},
      "require": [{"id": "N2", "expr": "impl == none or tp == 1", "why": "w", "negative": true},
                  {"id": "N3", "expr": "tp < 9", "why": "w", "negative": true}])");
  EXPECT_EQ(names(rows), (std::vector<std::string>{"impl=manual,tp=2 N2"}));
  EXPECT_EQ(rows.rows[0].breaks, std::vector<std::string>{"N2"});
  EXPECT_EQ(rows.not_isolated, std::vector<std::string>{"N3: no row breaks it"});
}

TEST_F(NegativeRowsTest,
       WhatCannotBeIsolatedBreaksTheFewestTogetherAndTheFirstInSourceOrderIsExpected) {
  const NegativeRows rows = rows_of(
      R"-("axes": {"impl": ["none", "full_iteration"], "nan_check_loss": [false, true],
                   "tp": [1, 2]},
      "require": [{"id": "X0", "expr": "impl == none or tp == 1 or not nan_check_loss", "why": "w"},
                  {"id": "X1", "expr": "not (impl == full_iteration and nan_check_loss)",
                   "why": "w", "negative": true}])-");
  EXPECT_EQ(names(rows),
            (std::vector<std::string>{"impl=full_iteration,nan_check_loss=true R035"}));
  EXPECT_EQ(rows.rows[0].breaks, (std::vector<std::string>{"R035", "X1"}));
  EXPECT_EQ(rows.not_isolated, std::vector<std::string>{"X1: breaks only together with R035"});
  EXPECT_EQ(catalogue_.rules.refusal(rows.rows[0].test_case, machine_)->rule, "R035")
      << "the rule that the rank program names";
}

TEST_F(NegativeRowsTest, TwoOthersAreBrokenWhereOneIsNotEnough) {
  const NegativeRows rows =
      rows_of(R"("axes": {"tp": [1, 2], "dp": [1, 2], "pp": [1, 2], "dropout": [false, true]},
      "require": [{"id": "A", "expr": "tp == 1 or dp == 1", "why": "w"},
                  {"id": "B", "expr": "tp == 1 or pp == 1", "why": "w"},
                  {"id": "C", "expr": "tp * dp * pp < 8", "why": "w", "negative": true},
                  {"id": "D", "expr": "not dropout or dp == 2", "why": "w"}])");
  EXPECT_EQ(names(rows), (std::vector<std::string>{"tp=2,pp=2,dp=2 A"}));
  EXPECT_EQ(rows.rows[0].breaks, (std::vector<std::string>{"A", "B", "C"}));
  EXPECT_EQ(rows.not_isolated, std::vector<std::string>{"C: breaks only together with A, B"});
}

TEST_F(NegativeRowsTest, WithoutNegativeConstraintsThereIsNothing) {
  EXPECT_TRUE(
      rows_of(R"("axes": {"tp": [1, 2]}, "require": [{"id": "A", "expr": "tp == 1", "why": "w"}])")
          .rows.empty());
}

}  // namespace
}  // namespace graphproof::matrix
