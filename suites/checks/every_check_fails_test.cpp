// A check that nothing can fail proves nothing: each has a row of changed evidence that fails it
// and no other check (check_rows.h). Planted faults fail them in real ranks; rows are for those
// that no fault of a rank reaches, too.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "suites/checks/check_table.h"

namespace graphproof::checks {
namespace {

/// Which checks were failed is known when all tests have run.
class EveryCheckFails : public testing::Environment {
 public:
  void TearDown() override {
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    if (all.test_to_run_count() != all.total_test_count())
      return;  // a part of the tests was asked for
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
