#include "launcher/batch/batches.h"

#include <gtest/gtest.h>

#include <string>

namespace graphproof::launcher {
namespace {

Attempt attempt(int number, int ranks, double seconds = 0.5) {
  record::PlanLine line;
  line.id = "000000000000" + std::to_string(1000 + number);
  line.name = "case" + std::to_string(number);
  line.axes = {{"impl", "none"}, {"fault", "none"}};
  line.ranks = ranks;
  line.isolation = "batch";
  line.expected_seconds = seconds;
  return {line, 1, ""};
}

std::vector<std::size_t> sizes(const std::vector<CaseGroup>& groups) {
  std::vector<std::size_t> list;
  for (const CaseGroup& group : groups) list.push_back(group.attempts.size());
  return list;
}
using Sizes = std::vector<std::size_t>;

TEST(BatchesTest, CasesOfOneWorldAndEnvironmentShareProcesses) {
  Attempt other = attempt(3, 1);
  other.line.environment = {{"NCCL_ALGO", "Tree"}};
  const auto groups = group_cases({attempt(1, 1), attempt(2, 2), other, attempt(4, 1)}, "sim", 4);
  ASSERT_EQ(sizes(groups), (Sizes{2, 1, 1}));
  EXPECT_EQ(groups[0].attempts[1].line.name, "case4");
}

TEST(BatchesTest, AFaultAndAProcessCaseAreAlone) {
  Attempt first = attempt(1, 1), second = attempt(2, 1), fault = attempt(3, 1);
  first.line.isolation = second.line.isolation = "process";
  fault.line.axes["fault"] = "M23";
  fault.line.expect.kind = "fault";
  fault.line.expect.fault = "M23";
  EXPECT_EQ(sizes(group_cases({first, second, fault, attempt(4, 1)}, "sim", 4)),
            (Sizes{1, 1, 1, 1}));
}

TEST(BatchesTest, LongGroupsUseEverySlotAndKeepTheirOrder) {
  std::vector<Attempt> plan;
  for (int i = 0; i < 10; ++i) plan.push_back(attempt(i, 2, 30));
  const auto groups = group_cases(plan, "sim", 4);
  EXPECT_EQ(sizes(groups), (Sizes{5, 5}));
  EXPECT_EQ(groups[1].attempts.front().line.name, "case5");
  EXPECT_EQ(sizes(group_cases({attempt(1, 1), attempt(2, 1)}, "sim", 4)), Sizes{2})
      << "a second start would cost more";
}

TEST(BatchesTest, OnePairOfProcessesCarriesABoundedNumberOfCases) {
  std::vector<Attempt> plan;
  for (std::size_t i = 0; i < 2 * kCasesPerBatch + 1; ++i)
    plan.push_back(attempt(static_cast<int>(i), 4, 0));
  for (const CaseGroup& group : group_cases(plan, "sim", 4))
    EXPECT_LE(group.attempts.size(), kCasesPerBatch);
}

}  // namespace
}  // namespace graphproof::launcher
