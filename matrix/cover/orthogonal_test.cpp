#include "matrix/cover/orthogonal.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace graphproof::cover {
namespace {

/// Calls `visit` for every choice of `strength` out of `columns` columns.
template <class Visit>
void choose(int columns, int strength, std::vector<int>& chosen, const Visit& visit) {
  if (static_cast<int>(chosen.size()) == strength) return visit(chosen);
  for (int column = chosen.empty() ? 0 : chosen.back() + 1; column < columns; ++column) {
    chosen.push_back(column);
    choose(columns, strength, chosen, visit);
    chosen.pop_back();
  }
}

TEST(OrthogonalArrayTest, EveryChoiceOfColumnsHasEachCombinationExactlyOnce) {
  for (const auto& [order, strength] : std::vector<std::pair<int, int>>{{2, 2},
                                                                        {2, 3},
                                                                        {3, 2},
                                                                        {3, 3},
                                                                        {3, 4},
                                                                        {4, 2},
                                                                        {4, 3},
                                                                        {5, 4},
                                                                        {7, 2},
                                                                        {8, 3},
                                                                        {9, 2},
                                                                        {16, 2},
                                                                        {25, 2},
                                                                        {27, 2}}) {
    const auto rows = orthogonal_array(order, strength);
    std::size_t all = 1;
    for (int factor = 0; factor < strength; ++factor) all *= static_cast<std::size_t>(order);
    ASSERT_EQ(rows.size(), all) << order << " " << strength;
    EXPECT_EQ(rows.front(), std::vector<int>(static_cast<std::size_t>(order) + 1, 0));
    std::vector<int> chosen;
    choose(order + 1, strength, chosen, [&](const std::vector<int>& columns) {
      std::set<std::vector<int>> seen;
      for (const auto& row : rows) {
        std::vector<int> combination;
        for (const int column : columns)
          combination.push_back(row[static_cast<std::size_t>(column)]);
        seen.insert(combination);
      }
      EXPECT_EQ(seen.size(), all) << "order " << order << ", strength " << strength;
      EXPECT_TRUE(*seen.begin() >= std::vector<int>(columns.size(), 0) &&
                  *seen.rbegin() <= std::vector<int>(columns.size(), order - 1));
    });
  }
}

TEST(OrthogonalArrayTest, PrimePowersAreFound) {
  std::vector<int> found;
  for (int order = prime_power_from(2); order > 0; order = prime_power_from(order + 1))
    found.push_back(order);
  EXPECT_EQ(std::vector<int>(found.begin(), found.begin() + 17),
            (std::vector<int>{2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31}));
  EXPECT_EQ(found.back(), 128);
  EXPECT_EQ(prime_power_from(129), 0);
}

}  // namespace
}  // namespace graphproof::cover
