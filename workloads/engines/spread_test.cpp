#include "workloads/testing/spread.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

namespace graphproof::engines {
namespace {

TEST(Spread, LeavesOutNoRowAndNoLayoutAndRunsAllPairsWhenAsked) {
  ASSERT_EQ(std::getenv("GRAPHPROOF_EVERY_LAYOUT"), nullptr);
  for (int rows = 1; rows <= 9; ++rows)
    for (int layouts = 1; layouts <= 9; ++layouts) {
      std::vector<int> all_rows;
      for (int row = 0; row < rows; ++row) all_rows.push_back(row);
      const auto each_layout = [&](int, auto visit) {
        for (int layout = 0; layout < layouts; ++layout) visit(layout);
      };
      std::set<int> seen_rows, seen_layouts;
      std::set<std::pair<int, int>> pairs;
      const auto note = [&](int row, int layout) {
        seen_rows.insert(row);
        seen_layouts.insert(layout);
        EXPECT_TRUE(pairs.emplace(row, layout).second) << row << " ran twice on " << layout;
      };
      spread(all_rows, each_layout, note);
      EXPECT_EQ(std::ssize(seen_rows), rows) << "of " << layouts << " layouts";
      EXPECT_EQ(std::ssize(seen_layouts), layouts) << "of " << rows << " rows";
      EXPECT_EQ(std::ssize(pairs), std::max(rows, layouts));
    }
}

}  // namespace
}  // namespace graphproof::engines
