// A check that cannot fail proves nothing. Each check has a row of changed evidence that fails it
// and no other check (check_rows.h), also those that no planted fault of a rank can reach.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "suites/checks/check_table.h"

namespace graphproof::checks {
namespace {

/// The checks that rows have failed are known after all tests have run.
class EveryCheckFails : public testing::Environment {
 public:
  void TearDown() override {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    if (all.test_to_run_count() != all.total_test_count()) return;  // only some of the tests ran
    std::set<std::string> failed;
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
      const testing::TestSuite& suite = *all.GetTestSuite(s);
      for (int t = 0; t < suite.total_test_count(); ++t) {
        const testing::TestResult& result = *suite.GetTestInfo(t)->result();
        for (int p = 0; p < result.test_property_count(); ++p)
          failed.insert(result.GetTestProperty(p).key());
      }
    }
    for (const Check& check : all_checks())
      EXPECT_TRUE(failed.contains(std::string(check.name)))
          << check.name
          << ": no row of changed evidence fails it; next: add judge_rows() to its test";
  }
};

testing::Environment* const kEveryCheckFails =
    testing::AddGlobalTestEnvironment(new EveryCheckFails);

}  // namespace
}  // namespace graphproof::checks
