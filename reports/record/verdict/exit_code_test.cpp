#include "reports/record/verdict/exit_code.h"

#include <gtest/gtest.h>

namespace graphproof::record {
namespace {

TEST(ExitCode, TheStrongerOneWinsInEveryPair) {
  constexpr int kOrder[] = {6, 2, 5, 1, 4, 3, 0};
  for (std::size_t i = 0; i < std::size(kOrder); ++i)
    for (std::size_t j = i; j < std::size(kOrder); ++j) {
      const auto strong = static_cast<ExitCode>(kOrder[i]), weak = static_cast<ExitCode>(kOrder[j]);
      EXPECT_EQ(stronger(strong, weak), strong);
      EXPECT_EQ(stronger(weak, strong), strong);
    }
  EXPECT_EQ(strongest({}), ExitCode::ok);
  const ExitCode kMixed[] = {ExitCode::ok, ExitCode::infrastructure, ExitCode::product,
                             ExitCode::coverage};
  EXPECT_EQ(strongest(kMixed), ExitCode::product);
}

TEST(ExitCode, EachHasAMeaning) {
  for (const ExitCode code : kExitPrecedence) EXPECT_FALSE(meaning(code).empty());
}

}  // namespace
}  // namespace graphproof::record
