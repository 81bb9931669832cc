#include "launcher/batches.h"

#include <gtest/gtest.h>

#include <string>

namespace graphproof::launcher {
namespace {

record::PlanLine line(int number, int ranks, double seconds = 0.5) {
  record::PlanLine line;
  line.id = "000000000000" + std::to_string(1000 + number);
  line.name = "case" + std::to_string(number);
  line.axes = {{"impl", "none"}, {"fault", "none"}};
  line.ranks = ranks;
  line.isolation = "batch";
  line.expected_seconds = seconds;
  return line;
}

std::vector<std::size_t> sizes(const std::vector<CaseGroup>& groups) {
  std::vector<std::size_t> list;
  for (const CaseGroup& group : groups) list.push_back(group.lines.size());
  return list;
}
using Sizes = std::vector<std::size_t>;

TEST(BatchesTest, CasesOfOneWorldAndEnvironmentShareProcesses) {
  record::PlanLine other = line(3, 1);
  other.environment = {{"NCCL_ALGO", "Tree"}};
  const auto groups = group_cases({line(1, 1), line(2, 2), other, line(4, 1)}, "sim", 4);
  ASSERT_EQ(sizes(groups), (Sizes{2, 1, 1}));
  EXPECT_EQ(groups[0].lines[1].name, "case4");
}

TEST(BatchesTest, AFaultAndAProcessCaseAreAlone) {
  record::PlanLine first = line(1, 1), second = line(2, 1), fault = line(3, 1);
  first.isolation = second.isolation = "process";
  fault.axes["fault"] = "M23";
  fault.expect.kind = "fault";
  fault.expect.fault = "M23";
  EXPECT_EQ(sizes(group_cases({first, second, fault, line(4, 1)}, "sim", 4)), (Sizes{1, 1, 1, 1}));
}

TEST(BatchesTest, SkippedCasesStartNothing) {
  record::PlanLine skipped = line(1, 8);
  skipped.skip = record::Skip{*record::Verdict::from("skipped.gpus"), "8 ranks"};
  EXPECT_TRUE(group_cases({skipped}, "sim", 4).empty());
}

TEST(BatchesTest, LongGroupsUseEverySlotAndKeepTheirOrder) {
  std::vector<record::PlanLine> plan;
  for (int i = 0; i < 10; ++i) plan.push_back(line(i, 2, 30));
  const auto groups = group_cases(plan, "sim", 4);
  EXPECT_EQ(sizes(groups), (Sizes{5, 5}));
  EXPECT_EQ(groups[1].lines.front().name, "case5");
  EXPECT_EQ(sizes(group_cases({line(1, 1), line(2, 1)}, "sim", 4)), Sizes{2}) << "a second start would cost more";
}

TEST(BatchesTest, OnePairOfProcessesCarriesABoundedNumberOfCases) {
  std::vector<record::PlanLine> plan;
  for (std::size_t i = 0; i < 2 * kCasesPerBatch + 1; ++i) plan.push_back(line(static_cast<int>(i), 4, 0));
  for (const CaseGroup& group : group_cases(plan, "sim", 4)) EXPECT_LE(group.lines.size(), kCasesPerBatch);
}

}  // namespace
}  // namespace graphproof::launcher
