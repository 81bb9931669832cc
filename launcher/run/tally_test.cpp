#include "launcher/run/tally.h"

#include <gtest/gtest.h>

#include <fstream>

#include "launcher/batch/attempt_folder.h"
#include "launcher/run/pending_work.h"
#include "reports/record/job/plan.h"
#include "reports/record/run/journal.h"
#include "reports/record/testing/scratch_folder.h"

namespace graphproof::launcher {
namespace {

record::PlanLine line(const std::string& id) {
  record::PlanLine line{.id = id,
                        .name = "impl=\"none\\\",\"verdict\":\"pass\"",
                        .axes = {{"impl", "none"}},
                        .isolation = "batch"};
  line.why = "a test";
  return line;
}

record::Record record_of(const std::string& id, const char* verdict) {
  record::Record record{
      .run_id = "20260101-000000-0001", .case_id = id, .name = "named \"verdict\":\"fail.silent\""};
  record.context = {"sim", "batch", "local", "cold", "b001"};
  record.verdict = record.observed = *record::Verdict::from(verdict);
  record.reason = "x";
  return record;
}

TEST(TallyTest, TheLastRecordOfEachCaseCountsAndSkippedOnesByTheirPlan) {
  const record::ScratchFolder folder;
  record::PlanLine skipped = line("000000000000000c");
  skipped.skip = record::Skip{*record::Verdict::from("skipped.gpus"), "too few"};
  std::ofstream(folder.path() / "plan.jsonl")
      << record::to_line(line("000000000000000a")) << record::to_line(line("000000000000000b"))
      << record::to_line(skipped) << record::to_line(line("000000000000000d"));
  EXPECT_EQ(tally(folder.path()).not_run, 3) << "without a journal nothing was run";
  std::ofstream(folder.path() / "journal.jsonl")
      << record::to_line(record_of("000000000000000a", "fail.numerics"))
      << record::to_line(record_of("000000000000000b", "pass"))
      << record::to_line(record_of("000000000000000a", "fail.isolation")) << "{\"schema\":\"torn";
  const Tally found = tally(folder.path());
  EXPECT_EQ(found.planned, 4);
  EXPECT_EQ(found.not_run, 1);
  EXPECT_EQ(found.counts,
            (std::map<std::string, int>{{"fail.isolation", 1}, {"pass", 1}, {"skipped.gpus", 1}}));
}

TEST(TallyTest, WhatCanBeResumedIsWhatRemainsWhateverIsOnlyCounted) {
  const record::ScratchFolder folder;
  std::vector<record::PlanLine> plan;
  std::string plan_text, journal_text;
  const auto id_of = [](int number) { return "00000000000000" + std::to_string(10 + number); };
  for (int number = 0; number < 12; ++number) {
    plan.push_back(line(id_of(number)));
    if (number == 11)
      plan.back().skip = record::Skip{*record::Verdict::from("skipped.gpus"), "too few"};
    plan_text += record::to_line(plan.back());
  }
  std::ofstream(folder.path() / "plan.jsonl") << plan_text;
  // Cases 0 and 1 are done; 2 failed in a batch; 3 ended infra once, 4 twice; 5 was cut off; 7
  // failed and its attempt alone was cut off; 8 is unexercised; the others were never touched.
  const std::pair<int, const char*> records[] = {
      {0, "pass"},       {1, "xfail"},      {2, "fail.numerics"}, {3, "infra.node"},
      {4, "infra.node"}, {4, "infra.node"}, {7, "fail.numerics"}, {8, "unexercised"}};
  std::map<int, int> attempts;
  for (const auto& [number, verdict] : records) {
    record::Record one = record_of(id_of(number), verdict);
    one.attempt = ++attempts[number];
    if (one.attempt > 1) one.again = "x";
    journal_text += record::to_line(one);
  }
  std::ofstream(folder.path() / "journal.jsonl") << journal_text;
  for (const auto& [number, attempt] : {std::pair{5, 1}, {7, 2}}) {
    std::filesystem::create_directories(folder.path() / attempt_folder(id_of(number), attempt));
    std::ofstream(folder.path() / attempt_folder(id_of(number), attempt) / "rank-0.evidence.jsonl")
        << "{}\n";
  }
  const PendingWork left = pending_work(
      folder.path(), plan, record::read_journal(folder.path() / "journal.jsonl").records);
  const Resumable found = resumable(folder.path());
  EXPECT_EQ(found, (Resumable{.kept = left.kept,
                              .run = static_cast<int>(left.attempts.size() + left.diagnoses.size()),
                              .cut_off = left.cut_off,
                              .alone = static_cast<int>(left.diagnoses.size()),
                              .judge = static_cast<int>(left.unjudged.size())}));
  EXPECT_EQ(found, (Resumable{.kept = 4, .run = 7, .cut_off = 2, .alone = 2, .judge = 0}));
}

}  // namespace
}  // namespace graphproof::launcher
