#include "suites/arms/history.h"

#include <gtest/gtest.h>

namespace graphproof::suites {
namespace {

constexpr std::int64_t kStepBytes = 4 * sizeof(float);

Snapshot left_by(std::int64_t step) {
  return {{"losses", at::full({4}, static_cast<double>(step), at::kFloat)}};
}

History of_three_steps(std::int64_t kept_bytes) {
  History history(kept_bytes);
  for (std::int64_t step = 0; step < 3; ++step) history.add(left_by(step));
  return history;
}

TEST(History, KeepsEveryStepUpToItsBytes) {
  const History history = of_three_steps(3 * kStepBytes);
  for (std::int64_t step = 0; step < 3; ++step) {
    ASSERT_NE(history.at(step), nullptr) << step;
    EXPECT_EQ(history.at(step)->front().tensor[0].item<float>(), static_cast<float>(step));
  }
  EXPECT_EQ(history.at(3), nullptr);
}

TEST(History, AboveItsBytesKeepsOnlyTheLastStep) {
  const History history = of_three_steps(3 * kStepBytes - 1);
  EXPECT_EQ(history.at(0), nullptr);
  EXPECT_EQ(history.at(1), nullptr);
  ASSERT_NE(history.at(2), nullptr);
  EXPECT_EQ(history.at(2)->front().tensor[0].item<float>(), 2);
  EXPECT_EQ(history.steps().size(), 3u);
}

}  // namespace
}  // namespace graphproof::suites
