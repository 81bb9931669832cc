#include "launcher/policy/divergence_searches.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

record::Record record_of(const std::string& name) {
  record::Record record;
  record.name = name;
  return record;
}

TEST(DivergenceSearchesTest, ASearchIsKnownByItsBatchUntilItIsRemoved) {
  DivergenceSearches searches;
  searches.add("b002", record_of("case"));
  EXPECT_TRUE(searches.contains("b002"));
  EXPECT_FALSE(searches.contains("b001"));
  const auto removed = searches.remove("b002");
  ASSERT_TRUE(removed);
  EXPECT_EQ(removed->name, "case");
  EXPECT_FALSE(searches.contains("b002"));
  EXPECT_FALSE(searches.remove("b002"));
}

TEST(DivergenceSearchesTest, ASearchMayRunForItsLimitFromItsStartOn) {
  DivergenceSearches searches;
  searches.add("b002", record_of("case"));
  EXPECT_FALSE(searches.overdue("b002", 1'000'000'000)) << "it waits for slots";
  searches.started("b002", 1000);
  EXPECT_FALSE(searches.overdue("b002", 1000 + DivergenceSearches::kLimit_ms));
  EXPECT_TRUE(searches.overdue("b002", 1001 + DivergenceSearches::kLimit_ms));
}

TEST(DivergenceSearchesTest, OtherBatchesHaveNoSuchLimit) {
  DivergenceSearches searches;
  searches.started("b001", 0);
  EXPECT_FALSE(searches.overdue("b001", 1'000'000'000));
  EXPECT_FALSE(searches.contains("b001"));
}

}  // namespace
}  // namespace graphproof::launcher
