#include "launcher/run/pending_work.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "launcher/batch/attempt_folder.h"
#include "reports/record/run/journal.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::launcher {
namespace {

namespace fs = std::filesystem;

record::PlanLine line(char digit, const std::string& isolation = "batch") {
  record::PlanLine line;
  line.id = std::string(16, digit);
  line.name = std::string("case") + digit;
  line.axes = {{"impl", "none"}};
  line.isolation = isolation;
  return line;
}

record::Record recorded(const record::PlanLine& line, const char* verdict, int attempt = 1,
                        const std::string& isolation = "") {
  record::Record record;
  record.run_id = "20260101-000000-aaaa";
  record.case_id = line.id;
  record.name = line.name;
  record.attempt = attempt;
  record.context.isolation = isolation.empty() ? line.isolation : isolation;
  record.context.batch = "b001";
  record.verdict = record.observed = *record::Verdict::from(verdict);
  record.rule = 60;
  record.reason = "r";
  record.artefacts = attempt_folder(line.id, attempt);
  return record;
}

struct PendingWorkTest : testing::Test {
  /// Makes the folder of an attempt: empty, with evidence, or ended.
  void attempt(const record::PlanLine& line, int number, const std::string& state) {
    const fs::path attempt = folder.path() / attempt_folder(line.id, number);
    fs::create_directories(attempt);
    if (state != "empty") std::ofstream(attempt / "rank-0.evidence.jsonl") << "{}\n";
    if (state != "ended") return;
    record::Context context;
    context.run_id = "20260101-000000-aaaa";
    context.case_id = line.id;
    context.attempt = number;
    context.batch = "b001";
    context.device = "sim";
    context.isolation = line.isolation;
    context.engine = "local";
    context.start = "cold";
    for (std::size_t i = 0; i < record::kPhaseCount; ++i)
      context.limits_ms[static_cast<record::Phase>(i)] = 1;
    context.axes = line.axes;
    context.ended = "finished";
    record::write_json(attempt / "context.json", record::to_json(context));
  }
  PendingWork of(const std::vector<record::PlanLine>& plan,
                 const std::vector<record::Record>& journal) {
    return pending_work(folder.path(), plan, journal);
  }
  record::ScratchFolder folder;
};

TEST_F(PendingWorkTest, OfANewRunEverythingRemainsButWhatIsSkipped) {
  record::PlanLine skipped = line('b');
  skipped.skip = record::Skip{*record::Verdict::from("skipped.gpus"), "8 ranks"};
  const PendingWork left = of({line('a'), skipped}, {});
  ASSERT_EQ(left.attempts.size(), 1u);
  EXPECT_EQ(left.attempts[0].number, 1);
  EXPECT_EQ(left.attempts[0].again, "");
  EXPECT_EQ(left.batch_count, 0);
}

TEST_F(PendingWorkTest, ACaseWithARecordIsNotRunAgainWhateverItsVerdict) {
  const auto process = line('d', "process");
  for (const record::PlanLine& one : {line('a'), line('b'), line('c'), process})
    attempt(one, 1, "ended");
  const PendingWork left = of({line('a'), line('b'), process},
                              {recorded(line('a'), "pass"), recorded(line('b'), "unexercised"),
                               recorded(process, "fail.numerics")});
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(left.kept, 3);
}

TEST_F(PendingWorkTest, WhatWasCutOffGetsTheNextNumberAndSaysWhy) {
  attempt(line('a'), 1, "begun");
  attempt(line('b'), 1, "empty");
  fs::create_directories(folder.path() / "batches/b012");
  const PendingWork left = of({line('a'), line('b')}, {});
  ASSERT_EQ(left.attempts.size(), 2u);
  EXPECT_EQ(left.attempts[0].number, 2);
  EXPECT_EQ(left.attempts[0].again, "attempt 1 was cut off before it ended");
  EXPECT_EQ(left.attempts[1].number, 1) << "it had not begun";
  EXPECT_EQ(left.cut_off, 1);
  EXPECT_EQ(left.batch_count, 12);
  // The launcher was killed once more before the second attempt began.
  attempt(line('a'), 2, "empty");
  const PendingWork again = of({line('a')}, {});
  EXPECT_EQ(again.attempts.at(0).number, 2);
  EXPECT_EQ(again.attempts.at(0).again, "attempt 1 was cut off before it ended");
}

TEST_F(PendingWorkTest, WhatEndedWithoutARecordIsJudgedAndNotRun) {
  attempt(line('a'), 1, "begun");
  attempt(line('a'), 2, "ended");
  const PendingWork left = of({line('a')}, {});
  ASSERT_EQ(left.unjudged.size(), 1u);
  EXPECT_EQ(left.unjudged[0].context.attempt, 2);
  EXPECT_TRUE(left.attempts.empty());
}

TEST_F(PendingWorkTest, WhatEndedButLostItsWordsWithTheHostsPowerIsRunAgain) {
  for (const char* left_of_it : {"", "{\"schema\":"}) {
    attempt(line('a'), 1, "ended");
    std::ofstream(folder.path() / attempt_folder(line('a').id, 1) / "context.json", std::ios::trunc)
        << left_of_it;
    const PendingWork left = of({line('a')}, {});
    EXPECT_TRUE(left.unjudged.empty()) << "its evidence may be lost as well";
    ASSERT_EQ(left.attempts.size(), 1u);
    EXPECT_EQ(left.attempts[0].number, 2);
    EXPECT_EQ(left.attempts[0].again, "attempt 1 was cut off before it ended");
  }
}

TEST_F(PendingWorkTest, AFailureInABatchStillWantsItsAttemptAlone) {
  attempt(line('a'), 1, "ended");
  PendingWork left = of({line('a')}, {recorded(line('a'), "fail.numerics")});
  ASSERT_EQ(left.diagnoses.size(), 1u);
  EXPECT_EQ(left.diagnoses[0].attempt.number, 2);
  EXPECT_EQ(left.diagnoses[0].attempt.line.isolation, "process");
  EXPECT_EQ(left.diagnoses[0].attempt.again, "failed in batch b001 (fail.numerics)");
  attempt(line('a'), 2, "begun");
  left = of({line('a')}, {recorded(line('a'), "fail.numerics")});
  ASSERT_EQ(left.diagnoses.size(), 1u);
  EXPECT_EQ(left.diagnoses[0].attempt.number, 3);
  EXPECT_EQ(left.cut_off, 1);
  EXPECT_TRUE(of({line('a')}, {recorded(line('a'), "fail.numerics"),
                               recorded(line('a'), "fail.isolation", 3, "process")})
                  .empty());
  record::PlanLine fault = line('a');
  fault.expect.kind = "fault";
  EXPECT_TRUE(of({fault}, {recorded(fault, "fail.survived", 2)}).empty()) << "faults run once";
}

TEST_F(PendingWorkTest, InfrastructureIsTriedOnceMore) {
  attempt(line('a'), 1, "ended");
  PendingWork left = of({line('a')}, {recorded(line('a'), "infra.launch")});
  ASSERT_EQ(left.attempts.size(), 1u);
  EXPECT_EQ(left.attempts[0].number, 2);
  EXPECT_EQ(left.attempts[0].again, "attempt 1 ended infra.launch");
  attempt(line('a'), 2, "ended");
  EXPECT_TRUE(
      of({line('a')}, {recorded(line('a'), "infra.launch"), recorded(line('a'), "infra.launch", 2)})
          .empty());
}

TEST_F(PendingWorkTest, AJournalCutAtAnyByteLosesNoCaseAndDoublesNone) {
  std::vector<record::PlanLine> plan;
  std::string text;
  for (const char digit : {'a', 'b', 'c'}) {
    plan.push_back(line(digit));
    attempt(plan.back(), 1, "ended");
    text += record::to_line(recorded(plan.back(), "pass"));
  }
  for (std::size_t bytes = 0; bytes <= text.size(); ++bytes) {
    std::ofstream(folder.path() / "journal.jsonl", std::ios::binary) << text.substr(0, bytes);
    const auto journal = record::read_journal(folder.path() / "journal.jsonl").records;
    const PendingWork left = of(plan, journal);
    EXPECT_TRUE(left.attempts.empty() && left.diagnoses.empty()) << "cut after " << bytes;
    EXPECT_EQ(left.unjudged.size() + static_cast<std::size_t>(left.kept), plan.size())
        << "cut after " << bytes;
    EXPECT_EQ(static_cast<std::size_t>(left.kept), journal.size()) << "cut after " << bytes;
  }
}

TEST(PlanTest, AnIdThatIsNoneNamesNoFolder) {
  for (const char* id : {"../../../../tmp/x", "/etc/passwd00000", "000000000000000",
                         "000000000000000G", "; touch /tmp/x ;"}) {
    nlohmann::json json = nlohmann::json::parse(record::to_line(line('a')));
    json["id"] = id;
    try {
      record::plan_line_from(json, "plan.jsonl");
      ADD_FAILURE() << id << " was taken";
    } catch (const record::ReadError& error) {
      EXPECT_NE(std::string(error.what()).find("16 hexadecimal digits"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace graphproof::launcher
