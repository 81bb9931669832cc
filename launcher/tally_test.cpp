#include "launcher/tally.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reports/record/journal.h"
#include "reports/record/plan.h"
#include "reports/record/scratch_folder.h"

namespace graphproof::launcher {
namespace {

record::PlanLine line(const std::string& id) {
  record::PlanLine line{.id = id, .name = "impl=\"none\\\",\"verdict\":\"pass\"", .axes = {{"impl", "none"}}, .isolation = "batch"};
  line.why = "a test";
  return line;
}

record::Record record_of(const std::string& id, const char* verdict) {
  record::Record record{.run_id = "20260101-000000-0001", .case_id = id, .name = "named \"verdict\":\"fail.silent\""};
  record.context = {"sim", "batch", "local", "cold", "b001"};
  record.verdict = record.observed = *record::Verdict::from(verdict);
  record.reason = "x";
  return record;
}

TEST(TallyTest, TheLastRecordOfEachCaseCountsAndSkippedOnesByTheirPlan) {
  const record::ScratchFolder folder;
  record::PlanLine skipped = line("000000000000000c");
  skipped.skip = record::Skip{*record::Verdict::from("skipped.gpus"), "too few"};
  std::ofstream(folder.path() / "plan.jsonl") << record::to_line(line("000000000000000a")) << record::to_line(line("000000000000000b"))
                                              << record::to_line(skipped) << record::to_line(line("000000000000000d"));
  EXPECT_EQ(tally(folder.path()).not_run, 3) << "without a journal nothing was run";
  std::ofstream(folder.path() / "journal.jsonl")
      << record::to_line(record_of("000000000000000a", "fail.numerics")) << record::to_line(record_of("000000000000000b", "pass"))
      << record::to_line(record_of("000000000000000a", "fail.isolation")) << "{\"schema\":\"torn";
  const Tally found = tally(folder.path());
  EXPECT_EQ(found.planned, 4);
  EXPECT_EQ(found.not_run, 1);
  EXPECT_EQ(found.counts, (std::map<std::string, int>{{"fail.isolation", 1}, {"pass", 1}, {"skipped.gpus", 1}}));
}

}  // namespace
}  // namespace graphproof::launcher
