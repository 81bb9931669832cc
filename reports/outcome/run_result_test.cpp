#include "reports/outcome/run_result.h"

#include <gtest/gtest.h>

#include "reports/record/run/journal.h"
#include "reports/record/schema/violations.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::Result;
using record::operator""_verdict;

TEST(Records, AreAsTheirSchemaWantsWhateverTheVerdict) {
  for (const record::VerdictRow& row : record::kVerdicts) {
    const auto one = ended('1', "a", *record::Verdict::from(row.text), 60);
    EXPECT_EQ(joined(record::violations("record", record::to_json(one.record))), "") << row.text;
  }
}

TEST(RunResult, CasesWithoutARecordAreSkippedOrNotRunAsThePlanAndTheEndingSay) {
  const auto ran = ended('1', "a", "pass"_verdict, 90);
  const auto skip = skipped('2');
  const auto left = ended('3', "c", "pass"_verdict, 90);
  const auto none = [](const record::Record&) { return CheckResults(); };
  const auto result = run_result(run_of_tests(), {ran.plan, skip.plan, left.plan},
                                 {{ran.plan.id, ran.record}}, Ending::max_fail, 1, none);
  ASSERT_EQ(result.cases.size(), 3u);
  EXPECT_EQ(result.cases[0].record, ran.record);
  EXPECT_EQ(result.cases[1].record.verdict, "skipped.gpus"_verdict);
  EXPECT_EQ(result.cases[2].record.verdict, "not_run"_verdict);
  EXPECT_EQ(result.cases[2].record.rule, 13);
  EXPECT_EQ(result.repro("abc"), "./graphproof repro 20261121-101500-3f2a/abc");
}

TEST(RunResult, IsReadBackFromARunFolder) {
  const record::ScratchFolder folder;
  const auto ran = ended('1', "a", "pass"_verdict, 90), left = ended('3', "c", "pass"_verdict, 90);
  record::write_json(folder.path() / "run.json", record::to_json(run_of_tests()));
  record::write_atomically(folder.path() / "plan.jsonl",
                           record::to_line(ran.plan) + record::to_line(left.plan));
  record::JournalWriter(folder.path() / "journal.jsonl").append(ran.record);
  std::filesystem::create_directories(folder.path() / ran.record.artefacts);
  record::write_json(folder.path() / ran.record.artefacts / "checks.json",
                     record::to_json(*healthy_case().checks));

  const RunResult result = read_run_result(folder.path(), Ending::interrupted, 2);
  ASSERT_EQ(result.cases.size(), 2u);
  EXPECT_EQ(result.cases[0].record, ran.record);
  EXPECT_EQ(result.cases[0].checks.at("D43.replays"), Result::pass);
  EXPECT_EQ(result.cases[1].record.verdict, "not_run"_verdict);
  EXPECT_EQ(result.run, run_of_tests());
}

}  // namespace
}  // namespace graphproof::reports
