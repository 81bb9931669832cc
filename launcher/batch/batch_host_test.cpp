#include "launcher/batch/batch_host.h"

#include <gtest/gtest.h>

namespace graphproof::launcher {
namespace {

Attempt attempt(const std::string& subject) {
  record::PlanLine line;
  line.id = "0011223344556677";
  line.name = "subject=" + subject;
  line.axes = {{"impl", "callables"}, {"fault", "none"}};
  if (!subject.empty()) line.axes["subject"] = subject;
  line.isolation = "batch";
  return {line, 1, ""};
}

struct BatchHostTest : testing::Test {
  BatchHostTest() {
    run.run_id = "20000101-000000-0000";
    run.device = "cuda";
    run.engine = "local";
    run.stack.python = "python3";
  }
  BatchRequest request(const std::vector<Attempt>& attempts) const {
    const BatchHost host(run, {.run_folder = "/runs/r", .rank_program = "/opt/rank", .gpus = {}});
    return host.request({attempts}, "b001", {});
  }
  record::Run run;
};

TEST_F(BatchHostTest, ThePythonOfTheRunRunsTheBatchesOfOtherSubjects) {
  EXPECT_EQ(request({attempt("torch")}).job.python, "python3");
  EXPECT_EQ(request({attempt("torch")}).job.program, "/opt/rank");
  EXPECT_EQ(request({attempt("reference")}).job.python, "");
  EXPECT_EQ(request({attempt("")}).job.python, "") << "a plan from before the axis";
}

TEST_F(BatchHostTest, ACaseUnderComputeSanitizerKeepsTheLogWithItsEvidence) {
  Attempt checked = attempt("reference");
  checked.line.axes["sanitizer"] = "memcheck";
  const BatchRequest under_tool = request({checked});
  EXPECT_EQ(under_tool.job.sanitizer, "memcheck");
  EXPECT_EQ(under_tool.job.sanitizer_log,
            "/runs/r/cases/0011223344556677/attempt-1/compute-sanitizer.log");
  checked.line.axes["sanitizer"] = "none";
  EXPECT_EQ(request({checked}).job.sanitizer, "");
  EXPECT_EQ(request({attempt("reference")}).job.sanitizer, "") << "a plan from before the axis";
}

TEST_F(BatchHostTest, SubjectsShareNoBatch) {
  const auto groups =
      group_cases({attempt("torch"), attempt("fsdp2"), attempt(""), attempt("torch")}, "cuda", 2);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].attempts.size(), 2u);
}

}  // namespace
}  // namespace graphproof::launcher
