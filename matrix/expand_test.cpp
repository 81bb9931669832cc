#include "matrix/expand.h"

#include <gtest/gtest.h>

#include "matrix/thrown.h"

namespace graphproof::matrix {
namespace {

class ExpandTest : public testing::Test {
 protected:
  MatrixFile parse(const std::string& members) const { return parse_matrix_file("{\"schema\": \"graphproof-matrix/1\"," + members + "}", "m.json", catalogue_, {}); }

  Expansion run(const MatrixFile& file, std::vector<std::string>* names = nullptr, const std::string& where = "") const {
    std::optional<Expression> filter;
    if (!where.empty()) filter = Expression::condition(where, file.scope, Origin::option("--where", where));
    return expand(file, catalogue_, machine_, filter, [&](ExpandedRow&& row) {
      if (names != nullptr) names->push_back(case_name(catalogue_.axes, row.test_case) + (row.skip_as.empty() ? "" : " " + row.skip_as));
    });
  }

  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
  const Machine machine_{.device = "sim", .slots = 4, .stack = {}};
};

TEST_F(ExpandTest, LastAxisTurnsFastest) {
  std::vector<std::string> names;
  const Expansion result = run(parse(R"("axes": {"dp": [1, 2], "tp": [2, 1]})"), &names);
  EXPECT_EQ(names, (std::vector<std::string>{"tp=2", "tp=2,dp=2", "default", "dp=2"}));
  EXPECT_EQ(result.raw, 4);
  EXPECT_EQ(result.valid, 4);
}

TEST_F(ExpandTest, FileWithoutAxesIsTheDefaultCase) {
  std::vector<std::string> names;
  run(parse("\"axes\": {}"), &names);
  EXPECT_EQ(names, std::vector<std::string>{"default"});
}

TEST_F(ExpandTest, RulesRemoveRowsUnderTheFirstIdInSourceOrder) {
  std::vector<std::string> names;
  const Expansion result = run(parse(R"("axes": {"impl": ["none", "full_iteration"], "tp": [1, 3], "nan_check_loss": [false, true]})"), &names);
  EXPECT_EQ(names, (std::vector<std::string>{"default", "nan_check_loss=true", "impl=full_iteration"}));
  EXPECT_EQ(result.raw, 8);
  EXPECT_EQ(result.valid, 3);
  ASSERT_EQ(result.removed.size(), 2u);
  EXPECT_EQ(result.removed[0].rule, "R035");
  EXPECT_EQ(result.removed[0].rows, 2);
  EXPECT_EQ(result.removed[1].rule, "G001");
  EXPECT_EQ(result.removed[1].rows, 3);
}

TEST_F(ExpandTest, SwitchedOffAxisIsOneStateAndAbsent) {
  std::vector<std::string> names;
  const Expansion result = run(parse(R"("axes": {"impl": ["none", "local"], "modules": {"subset_of": ["attn", "mlp"], "when": "impl == local"}, "dropout": [false, true]},
      "require": [{"id": "a", "expr": "modules == absent or len(modules) < 2", "why": "w"}])"), &names);
  EXPECT_EQ(names, (std::vector<std::string>{"default", "dropout=true", "impl=local", "impl=local,dropout=true", "impl=local,modules=[attn]", "impl=local,modules=[attn],dropout=true",
                                             "impl=local,modules=[mlp]", "impl=local,modules=[mlp],dropout=true"}));
  EXPECT_EQ(result.raw, 10);
  ASSERT_EQ(result.removed.size(), 1u);
  EXPECT_EQ(result.removed[0].rows, 2);
}

TEST_F(ExpandTest, ConstraintWithAsSkipsInsteadOfRemoving) {
  std::vector<std::string> names;
  const Expansion result = run(parse(R"("axes": {"tp": [1, 2, 4], "dp": [1, 2]}, "require": [{"id": "fits", "expr": "tp * dp <= slots", "why": "w", "as": "skipped.gpus"}])"), &names);
  EXPECT_EQ(names.back(), "tp=4,dp=2 skipped.gpus");
  EXPECT_EQ(result.valid, 6);
  EXPECT_TRUE(result.removed.empty());
}

TEST_F(ExpandTest, WhereLeavesRowsOutAndCountsThem) {
  std::vector<std::string> names;
  const Expansion result = run(parse(R"("axes": {"tp": [1, 2], "dp": [1, 2]})"), &names, "tp == dp");
  EXPECT_EQ(names, (std::vector<std::string>{"default", "tp=2,dp=2"}));
  EXPECT_EQ(result.valid, 4);
  EXPECT_EQ(result.filtered, 2);
}

TEST_F(ExpandTest, UndecidedConstraintKeepsTheRowAndIsListed) {
  const Expansion result = run(parse(R"("axes": {"tp": [1]}, "require": [{"id": "a", "expr": "te_version > 2.0", "why": "w"}])"));
  EXPECT_EQ(result.valid, 1);
  EXPECT_EQ(result.unknown, std::vector<std::string>{"a"});
}

TEST_F(ExpandTest, ProductThatNobodyCanWalkIsRefused) {
  std::string values = "1";
  for (int i = 2; i <= 4000; ++i) values += "," + std::to_string(i);
  const Problem problem = thrown([&] { run(parse("\"axes\": {\"microbatches\": [" + values + "], \"seq_length\": [" + values + "], \"ffn\": [" + values + "]}")); });
  EXPECT_EQ(problem.what, "the product of the axes is too large");
  EXPECT_EQ(problem.got, "more than 1000000000 rows up to axis `seq_length`");
}

// Every row of nine matrices, judged by evaluating each condition on the case itself.
TEST_F(ExpandTest, ProductEqualsBruteForce) {
  for (const std::string require : {"tp * dp <= 4", "dropout implies tp == 1", "impl != none or dp == 2"})
  for (const std::string exclude : {"{\"tp\": [2, 4], \"dropout\": true}", "{\"impl\": \"local\"}", "{\"impl\": [\"none\", \"local\"], \"dp\": 2}"}) {
    const MatrixFile file = parse("\"axes\": {\"impl\": [\"none\", \"local\", \"full_iteration\"], \"tp\": [1, 2, 3, 4], \"dp\": [1, 2], \"dropout\": [false, true], \"nan_check_loss\": [true, false],"
                                  "\"rng_tracker\": [\"plain\", \"graph_safe\"]}, \"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"" + require + "\"}], \"exclude\": [" + exclude + "]");
    std::vector<std::string> want;
    std::int64_t raw = 0;
    for (const char* impl : {"none", "local", "full_iteration"})
      for (const int tp : {1, 2, 3, 4})
        for (const int dp : {1, 2})
          for (const char* dropout : {"false", "true"})
            for (const char* tracker : {"plain", "graph_safe"})
              for (const char* nan : {"true", "false"}) {
                ++raw;
                const Case test_case = case_from_name(catalogue_.axes, std::string("impl=") + impl + ",tp=" + std::to_string(tp) + ",dp=" + std::to_string(dp) + ",dropout=" + dropout + ",nan_check_loss=" + nan + ",rng_tracker=" + tracker, "");
                bool valid = !catalogue_.rules.refusal(test_case, machine_);
                for (const Constraint& constraint : file.constraints) valid = valid && constraint.require.holds(test_case, machine_) == Truth::yes;
                if (valid) want.push_back(case_name(catalogue_.axes, test_case));
              }
    std::vector<std::string> names;
    const Expansion result = run(file, &names);
    EXPECT_EQ(names, want) << require << " " << exclude;
    EXPECT_EQ(result.raw, raw);
    std::int64_t removed = 0;
    for (const Removed& one : result.removed) removed += one.rows;
    EXPECT_EQ(result.valid + removed, raw);
  }
}

TEST_F(ExpandTest, NegativeRowsBreakTheirConstraintAlone) {
  const MatrixFile file = parse(R"-("axes": {"impl": ["none", "manual"], "tp": [1, 2], "dropout": [false, true]},
      "require": [{"id": "N1", "expr": "not (impl == manual and dropout)", "why": "w", "negative": true}, {"id": "N2", "expr": "impl == none", "why": "w", "negative": true},
                  {"id": "N3", "expr": "tp < 9", "why": "w", "negative": true}])-");
  const NegativeRows rows = negative_rows(file, catalogue_, machine_);
  ASSERT_EQ(rows.rows.size(), 1u);
  EXPECT_EQ(rows.rows[0].rule, "N2");
  EXPECT_EQ(case_name(catalogue_.axes, rows.rows[0].test_case), "impl=manual");
  EXPECT_EQ(rows.not_isolated, (std::vector<std::string>{"N1: breaks only together: N1, N2", "N3: no row breaks it"}));
}

}  // namespace
}  // namespace graphproof::matrix
