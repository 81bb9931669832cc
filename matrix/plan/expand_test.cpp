#include "matrix/plan/expand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "matrix/testing/thrown.h"

namespace graphproof::matrix {
namespace {

class ExpandTest : public testing::Test {
 protected:
  MatrixFile parse(const std::string& members) const {
    return parse_matrix_file("{\"schema\": \"graphproof-matrix/1\"," + members + "}", "m.json",
                             catalogue_, {});
  }

  Expansion expansion(const MatrixFile& file, const std::string& where = "") const {
    std::optional<Expression> filter;
    if (!where.empty())
      filter = Expression::condition(where, file.scope, Origin::option("--where", where));
    return Expansion(file, catalogue_, machine_, filter);
  }

  std::string name(const ExpandedRow& row) const {
    return case_name(catalogue_.axes, row.test_case) +
           (row.skip ? " " + std::string(row.skip->verdict.text()) : "");
  }

  ExpansionCounts run(const MatrixFile& file, std::vector<std::string>* names = nullptr,
                      const std::string& where = "") const {
    const Expansion all = expansion(file, where);
    if (names != nullptr) all.for_each([&](ExpandedRow&& row) { names->push_back(name(row)); });
    return all.counts();
  }

  inline static const Catalogue catalogue_ = load_catalogue();  // read once, never changed
  const Machine machine_{.device = "sim", .slots = 4, .stack = {}};
};

TEST_F(ExpandTest, LastAxisChangesFastest) {
  std::vector<std::string> names;
  const ExpansionCounts result = run(parse(R"("axes": {"dp": [1, 2], "tp": [2, 1]})"), &names);
  EXPECT_EQ(names, (std::vector<std::string>{"tp=2", "tp=2,dp=2", "default", "dp=2"}));
  EXPECT_EQ(result.raw.rows, 4);
  EXPECT_EQ(result.valid.rows, 4);
}

TEST_F(ExpandTest, FileWithoutAxesIsTheDefaultCase) {
  std::vector<std::string> names;
  run(parse("\"axes\": {}"), &names);
  EXPECT_EQ(names, std::vector<std::string>{"default"});
}

TEST_F(ExpandTest, RulesRemoveRowsUnderTheFirstIdInSourceOrder) {
  std::vector<std::string> names;
  const ExpansionCounts result =
      run(parse(
              R"("axes": {"impl": ["none", "full_iteration"], "tp": [1, 3],
                      "nan_check_loss": [false, true]})"),
          &names);
  EXPECT_EQ(names,
            (std::vector<std::string>{"default", "nan_check_loss=true", "impl=full_iteration"}));
  EXPECT_EQ(result.raw.rows, 8);
  EXPECT_EQ(result.valid.rows, 3);
  ASSERT_EQ(result.removed.size(), 2u);
  EXPECT_EQ(result.removed[0].rule, "R035");
  EXPECT_EQ(result.removed[0].rows.rows, 2);
  EXPECT_EQ(result.removed[1].rule, "G001");
  EXPECT_EQ(result.removed[1].rows.rows, 3);
}

TEST_F(ExpandTest, SwitchedOffAxisIsOneStateAndAbsent) {
  std::vector<std::string> names;
  const ExpansionCounts result = run(parse(
                                         R"("axes": {"impl": ["none", "local"],
                      "modules": {"subset_of": ["attn", "mlp"], "when": "impl == local"},
                      "dropout": [false, true]},
      "require": [{"id": "a", "expr": "modules == absent or len(modules) < 2", "why": "w"}])"),
                                     &names);
  EXPECT_EQ(names, (std::vector<std::string>{
                       "default", "dropout=true", "impl=local", "impl=local,dropout=true",
                       "impl=local,modules=[attn]", "impl=local,modules=[attn],dropout=true",
                       "impl=local,modules=[mlp]", "impl=local,modules=[mlp],dropout=true"}));
  EXPECT_EQ(result.raw.rows, 10);
  ASSERT_EQ(result.removed.size(), 1u);
  EXPECT_EQ(result.removed[0].rows.rows, 2);
}

TEST_F(ExpandTest, ConstraintWithAsSkipsInsteadOfRemoving) {
  std::vector<std::string> names;
  const ExpansionCounts result = run(parse(
                                         R"("axes": {"tp": [1, 2, 4], "dp": [1, 2]},
             "require": [{"id": "fits", "expr": "tp * dp <= slots", "why": "w",
                          "as": "skipped.gpus"}])"),
                                     &names);
  EXPECT_EQ(names.back(), "tp=4,dp=2 skipped.gpus");
  EXPECT_EQ(result.valid.rows, 6);
  EXPECT_TRUE(result.removed.empty());
}

TEST_F(ExpandTest, WhereLeavesRowsOutAndCountsThem) {
  std::vector<std::string> names;
  const ExpansionCounts result =
      run(parse(R"("axes": {"tp": [1, 2], "dp": [1, 2]})"), &names, "tp == dp");
  EXPECT_EQ(names, (std::vector<std::string>{"default", "tp=2,dp=2"}));
  EXPECT_EQ(result.valid.rows, 4);
  EXPECT_EQ(result.filtered.rows, 2);
}

TEST_F(ExpandTest, UndecidedConstraintKeepsTheRowAndIsListed) {
  const ExpansionCounts result = run(parse(
      R"("axes": {"tp": [1]}, "require": [{"id": "a", "expr": "te_version > 2.0", "why": "w"}])"));
  EXPECT_EQ(result.valid.rows, 1);
  EXPECT_EQ(result.unknown, std::vector<std::string>{"a"});
}

TEST_F(ExpandTest, HugeProductIsCounted) {
  std::string axes;
  for (int i = 0; i < 40; ++i)
    axes += (i ? ", " : "") + std::string("\"env.GP_TEST_") + std::to_string(i) +
            "\": [\"unset\", \"0\", \"1\", \"2\"]";
  const ExpansionCounts result = run(
      parse("\"axes\": {" + axes +
            R"(}, "require": [{"id": "a", "why": "w", "expr": "env.GP_TEST_0 == env.GP_TEST_39"},
      {"id": "b", "why": "w", "expr": "env.GP_TEST_0 != unset implies env.GP_TEST_1 == unset"},
      {"id": "c", "why": "w", "expr": "env.GP_TEST_0 == env.GP_TEST_39 or tp == 1"}])"));
  EXPECT_EQ(result.raw.text(), "about 1.209e+24");
  // Constraint a leaves 4^39 rows. Of these b leaves all whose first axis is unset and a quarter of
  // the others.
  EXPECT_EQ(result.valid.rows, 302231454903657293676544.0L * (0.25L + 0.75L / 4));
  ASSERT_EQ(result.removed.size(), 2u);
  EXPECT_EQ(result.removed[0].rule, "a");
  EXPECT_NE(std::find(result.idle.begin(), result.idle.end(), "c"), result.idle.end())
      << "it removes nothing";
}

TEST_F(ExpandTest, RuleThatRemovesNothingAfterOthersIsIdle) {
  const ExpansionCounts result = run(parse(
      R"("axes": {"tp": [1, 2], "dp": [1, 2]},
         "require": [{"id": "a", "why": "w", "expr": "tp == 1"},
                     {"id": "b", "why": "w", "expr": "tp * dp < 4"}])"));
  ASSERT_EQ(result.removed.size(), 1u);
  EXPECT_EQ(result.removed[0].rule, "a");
  EXPECT_NE(std::find(result.idle.begin(), result.idle.end(), "b"), result.idle.end());
}

TEST_F(ExpandTest, RuleThatReadsTooManyCombinationsIsRefused) {
  std::string values = "1";
  for (int i = 2; i <= 4000; ++i) values += "," + std::to_string(i);
  const Problem problem = thrown([&] {
    run(parse("\"axes\": {\"microbatches\": [" + values + "], \"seq_length\": [" + values +
              "]}, \"require\": [{\"id\": \"a\", \"why\": \"w\", \"expr\": \"microbatches < "
              "seq_length\"}]"));
  });
  EXPECT_EQ(problem.what, "`a` reads too many combinations")
      << "parts of a rule are read one by one";
}

// Judges every row of nine matrices by evaluating each condition on the case itself.
TEST_F(ExpandTest, ProductEqualsBruteForce) {
  for (const std::string require :
       {"tp * dp <= 4", "dropout implies tp == 1", "impl != none or dp == 2"})
    for (const std::string exclude :
         {"{\"tp\": [2, 4], \"dropout\": true}", "{\"impl\": \"local\"}",
          "{\"impl\": [\"none\", \"local\"], \"dp\": 2}"}) {
      const MatrixFile file = parse(
          "\"axes\": {\"impl\": [\"none\", \"local\", \"full_iteration\"], \"tp\": [1, 2, 3, 4], "
          "\"dp\": [1, 2], \"dropout\": [false, true], \"nan_check_loss\": [true, false],"
          "\"rng_tracker\": [\"plain\", \"graph_safe\"]}, \"require\": [{\"id\": \"a\", \"why\": "
          "\"w\", \"expr\": \"" +
          require + "\"}], \"exclude\": [" + exclude + "]");
      std::vector<std::string> want;
      std::int64_t raw = 0;
      for (const char* impl : {"none", "local", "full_iteration"})
        for (const int tp : {1, 2, 3, 4})
          for (const int dp : {1, 2})
            for (const char* dropout : {"false", "true"})
              for (const char* tracker : {"plain", "graph_safe"})
                for (const char* nan : {"true", "false"}) {
                  ++raw;
                  const Case test_case =
                      case_from_name(catalogue_.axes,
                                     std::string("impl=") + impl + ",tp=" + std::to_string(tp) +
                                         ",dp=" + std::to_string(dp) + ",dropout=" + dropout +
                                         ",nan_check_loss=" + nan + ",rng_tracker=" + tracker,
                                     "");
                  bool valid = !catalogue_.rules.refusal(test_case, machine_);
                  for (const Constraint& constraint : file.constraints)
                    valid = valid && constraint.require.holds(test_case, machine_) == Truth::yes;
                  if (valid) want.push_back(case_name(catalogue_.axes, test_case));
                }
      std::vector<std::string> names;
      const ExpansionCounts result = run(file, &names);
      EXPECT_EQ(names, want) << require << " " << exclude;
      EXPECT_EQ(result.raw.rows, raw);
      long double removed = 0;
      for (const Removed& one : result.removed) removed += one.rows.rows;
      EXPECT_EQ(result.valid.rows + removed, raw);
    }
}

}  // namespace
}  // namespace graphproof::matrix
