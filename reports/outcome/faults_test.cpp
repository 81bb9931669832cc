#include "reports/outcome/faults.h"

#include <gtest/gtest.h>

#include "reports/record/schema/violations.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::Result;
using record::operator""_verdict;

CaseResult fault(char digit, record::Verdict verdict, int rule) {
  CaseResult one = ended(digit, "fault=M23", verdict, rule);
  one.plan.expect = {
      .kind = "fault", .fault = "M23", .detector = "D04", .clean_twin = std::string(16, 'a')};
  return one;
}

TEST(Faults, NameTheDetectorFirstAndTheTwinsVerdict) {
  CaseResult killed = fault('1', "pass.killed"_verdict, 81);
  killed.checks = {{"D01.lockstep", Result::fail},
                   {"D04.learning_rate", Result::fail},
                   {"D43.replays", Result::pass}};
  const auto rows = faults(run_of({killed, ended('a', "twin", "pass"_verdict, 90)}));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0], (record::FaultResult{.fault = "M23",
                                          .detector = "D04",
                                          .killed_by = {"D04.learning_rate", "D01.lockstep"},
                                          .status = record::FaultStatus::killed,
                                          .clean_twin = "pass"_verdict}));
  EXPECT_EQ(joined(record::violations("faults", record::to_json(rows))), "");
}

TEST(Faults, ATwinThatIsNotThereDidNotRun) {
  EXPECT_EQ(faults(run_of({fault('1', "fail.survived"_verdict, 83)})).at(0).clean_twin,
            "not_run"_verdict);
  EXPECT_TRUE(faults(run_of({ended('1', "a", "pass"_verdict, 90)})).empty());
}

}  // namespace
}  // namespace graphproof::reports
