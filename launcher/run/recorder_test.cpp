#include "launcher/run/recorder.h"

#include <gtest/gtest.h>

#include "launcher/testing/fake_run.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

struct RecorderTest : testing::Test {
  RecorderTest() : setup(fake_setup(folder.path(), "20260101-000000-aaaa", "rank")) {
    for (int i = 0; i < 3; ++i) {
      setup.plan.push_back(fake_line(i, 1, ""));
      setup.plan.back().expected_seconds = 10;
    }
  }
  record::Record record(int number, const char* verdict, int attempt = 1) {
    record::Record record;
    record.run_id = setup.run.run_id;
    record.case_id = setup.plan[static_cast<std::size_t>(number)].id;
    record.name = setup.plan[static_cast<std::size_t>(number)].name;
    record.attempt = attempt;
    record.verdict = record.observed = *record::Verdict::from(verdict);
    record.rule = 60;
    record.context = {
        .device = "sim", .isolation = "batch", .engine = "local", .start = "cold", .batch = "b001"};
    return record;
  }
  std::vector<record::Record> journal() {
    return record::read_journal(folder.path() / "journal.jsonl").records;
  }
  const record::ScratchFolder folder;
  RunSetup setup;
};

TEST_F(RecorderTest, ARecordIsInTheJournalWhenItIsKept) {
  Recorder recorder(setup, {});
  recorder.begin({});
  recorder.keep(record(0, "pass"), true);
  ASSERT_EQ(journal().size(), 1u);
  EXPECT_EQ(journal()[0].case_id, setup.plan[0].id);
  EXPECT_NE(record::read_text(folder.path() / "junit.xml").find("<testsuite"), std::string::npos);
}

TEST_F(RecorderTest, OnlyAVerdictThatStandsCountsAsDone) {
  Recorder recorder(setup, {});
  recorder.begin({});
  recorder.keep(record(0, "fail.numerics"), false);
  EXPECT_EQ(recorder.progress().done, 0);
  EXPECT_EQ(recorder.progress().failed, 0);
  EXPECT_EQ(recorder.progress().expected_left_seconds, 30);
  recorder.keep(record(0, "fail.numerics", 2), true);
  EXPECT_EQ(recorder.progress().done, 1);
  EXPECT_EQ(recorder.progress().failed, 1);
  EXPECT_EQ(recorder.progress().expected_done_seconds, 10);
  EXPECT_EQ(recorder.progress().expected_left_seconds, 20);
}

TEST_F(RecorderTest, SkippedCasesAreDoneFromTheStart) {
  setup.plan[2].skip = record::Skip{};
  Recorder recorder(setup, {});
  recorder.begin({});
  EXPECT_EQ(recorder.progress().planned, 3);
  EXPECT_EQ(recorder.progress().done, 1);
  EXPECT_EQ(recorder.progress().expected_left_seconds, 20);
}

TEST_F(RecorderTest, TheLastCaseIsTheLastOfThoseThatThePlanDoesNotSkip) {
  setup.plan[2].skip = record::Skip{};
  Recorder recorder(setup, {});
  recorder.begin({});
  EXPECT_FALSE(recorder.is_last(setup.plan[0].id));
  recorder.keep(record(0, "pass"), true);
  EXPECT_FALSE(recorder.is_last(setup.plan[0].id));
  EXPECT_TRUE(recorder.is_last(setup.plan[1].id));
  recorder.keep(record(1, "pass"), true);
  EXPECT_TRUE(recorder.is_last(setup.plan[1].id));
}

TEST_F(RecorderTest, AResumedRunGoesOnFromTheVerdictsThatStand) {
  Recorder recorder(setup, {record(0, "pass"), record(1, "fail.numerics")});
  recorder.begin({setup.plan[1].id});
  EXPECT_EQ(recorder.progress().done, 1) << "the second case is open";
  EXPECT_EQ(recorder.progress().failed, 0);
  EXPECT_FALSE(recorder.is_last(setup.plan[1].id)) << "the third is open as well";
  recorder.keep(record(2, "pass"), true);
  EXPECT_TRUE(recorder.is_last(setup.plan[1].id));
}

}  // namespace
}  // namespace graphproof::launcher
