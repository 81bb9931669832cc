// A check that nothing can fail proves nothing: each has a row of changed evidence that fails it
// and no other check, but for those that the row names (watched_rows.h).
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "suites/checks/watched/watched_check_table.h"

namespace graphproof::checks::watched {
namespace {

/// Which checks failed is known when all tests have run.
class EveryWatchedCheckFails : public testing::Environment {
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
    for (const WatchedCheck& check : all_watched_checks())
      EXPECT_TRUE(failed.contains(std::string(check.name)))
          << check.name
          << ": no row of changed evidence fails it; next: add judge_watched_rows() to its test";
  }
};

testing::Environment* const kEveryWatchedCheckFails =
    testing::AddGlobalTestEnvironment(new EveryWatchedCheckFails);

}  // namespace
}  // namespace graphproof::checks::watched
