#include "reports/history/history.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <functional>
#include <thread>

#include "matrix/input/input_error.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

namespace fs = std::filesystem;
using record::operator""_verdict;
using Mode = Database::Mode;

struct HistoryTest : testing::Test {
  const record::ScratchFolder scratch;
  const fs::path file = scratch.path() / "history.db";

  /// The whole message of what `action` throws; empty if it throws nothing.
  static std::string refusal(const std::function<void()>& action) {
    try {
      action();
    } catch (const matrix::InputError& error) {
      return error.what();
    }
    return "";
  }
};

/// A run on the given day of November with one result for each case 1, 2, ...
RunResult run_on(int day, std::vector<record::Verdict> verdicts, const std::string& nccl = "2.28") {
  std::vector<CaseResult> cases;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    cases.push_back(
        ended(static_cast<char>('1' + i), "tp=" + std::to_string(i + 1), verdicts[i], 90));
    cases.back().record.figures = {{"graph_step_ms", 2.0 * day}};
  }
  RunResult run = run_of(std::move(cases));
  const std::string text = (day < 10 ? "0" : "") + std::to_string(day);
  run.run.run_id = "202611" + text + "-101500-3f2a";
  run.run.started = "2026-11-" + text + "T10:15:00Z";
  run.run.stack.nccl_version = nccl;
  return run;
}

std::string with_sqlite(const fs::path& file, const std::string& sql) {
  sqlite3* handle = nullptr;
  sqlite3_open(file.c_str(), &handle);
  std::string first;
  const auto keep = [](void* to, int, char** values, char**) {
    *static_cast<std::string*>(to) = values[0] ? values[0] : "";
    return 0;
  };
  EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), keep, &first, nullptr), SQLITE_OK)
      << sqlite3_errmsg(handle);
  sqlite3_close(handle);
  return first;
}

TEST_F(HistoryTest, NamesTheFirstBadRunAndWhatChangedInTheStack) {
  History history(file, Mode::write);
  // Added in another order than they ran.
  for (const int day : {3, 1, 2, 5, 4})
    history.add(run_on(day, {day >= 4 ? "fail.hang.replay"_verdict : "pass"_verdict},
                       day >= 4 ? "2.29" : "2.28"));
  const CaseHistory found = history.show("tp=1");
  ASSERT_EQ(found.results.size(), 5u);
  EXPECT_EQ(found.results[0].started, "2026-11-01T10:15:00Z");
  ASSERT_TRUE(found.first_bad && found.last_good);
  EXPECT_EQ(found.first_bad->run_id, "20261104-101500-3f2a");
  EXPECT_EQ(found.last_good->run_id, "20261103-101500-3f2a");
  ASSERT_EQ(found.changed.size(), 1u);
  EXPECT_EQ(found.changed[0].part, "NCCL");
  EXPECT_EQ(found.suspects, std::vector<std::string>{"NCCL 2.29"});
  EXPECT_EQ(history.show("1111").case_id, found.case_id);
}

TEST_F(HistoryTest, TheLatestSeriesOfFailuresCounts) {
  History history(file, Mode::write);
  const record::Verdict verdicts[] = {"fail.numerics"_verdict, "pass"_verdict,
                                      "fail.numerics"_verdict, "not_run"_verdict,
                                      "fail.numerics"_verdict};
  for (int day = 1; day <= 5; ++day) history.add(run_on(day, {verdicts[day - 1]}));
  const CaseHistory found = history.show("tp=1");
  EXPECT_EQ(found.first_bad->run_id, "20261103-101500-3f2a");
  EXPECT_EQ(found.last_good->run_id, "20261102-101500-3f2a");
  EXPECT_TRUE(found.changed.empty());
  EXPECT_TRUE(found.suspects.empty()) << "good and bad runs have one stack";
}

TEST_F(HistoryTest, OnlyResultsOnOneStackMakeACaseFlaky) {
  History history(file, Mode::write);
  for (int day = 1; day <= 8; ++day)
    history.add(run_on(day,
                       {day % 4 == 0 ? "fail.numerics"_verdict : "pass"_verdict,
                        day >= 5 ? "fail.numerics"_verdict : "pass"_verdict, "pass"_verdict},
                       day >= 5 ? "2.29" : "2.28"));
  const auto found = history.flaky(50);
  ASSERT_EQ(found.size(), 2u) << "case 1, once on each stack; case 2 fails with the new NCCL only";
  for (const FlakyCase& one : found) {
    EXPECT_EQ(one.name, "tp=1");
    EXPECT_EQ(one.failed, 1);
    EXPECT_EQ(one.trials, 4);
    EXPECT_EQ(one.rate, wilson(1, 4));
  }
  EXPECT_EQ(history.flaky(3).size(), 1u) << "the latest three runs have one stack";
}

TEST_F(HistoryTest, TheTrendComparesStepTimesWithTheRunBefore) {
  History history(file, Mode::write);
  history.add(run_on(2, {"pass"_verdict, "pass"_verdict}));
  history.add(run_on(3, {"pass"_verdict, "fail.numerics"_verdict}));
  const auto runs = history.runs(10);
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_FALSE(runs[0].step_ratio);
  ASSERT_TRUE(runs[1].step_ratio);
  EXPECT_DOUBLE_EQ(*runs[1].step_ratio, 1.5);
  EXPECT_EQ(runs[1].step_pairs, 1) << "the time of a failure is not compared";
  EXPECT_EQ(runs[1].failed, 1);
}

TEST_F(HistoryTest, ARunThatIsAddedAgainIsReplaced) {
  History history(file, Mode::write);
  EXPECT_TRUE(history.add(run_on(1, {"not_run"_verdict})));
  EXPECT_FALSE(history.add(run_on(1, {"pass"_verdict})));
  const CaseHistory found = history.show("tp=1");
  ASSERT_EQ(found.results.size(), 1u);
  EXPECT_EQ(found.results[0].verdict, "pass");
}

TEST_F(HistoryTest, TwoWritersLoseNothing) {
  const auto write = [this](int first) {
    for (int day = first; day < first + 10; ++day)
      History(file, Mode::write).add(run_on(day, {"pass"_verdict, "pass"_verdict}));
  };
  {
    std::jthread one(write, 1), other(write, 11);
  }
  EXPECT_EQ(History(file, Mode::read).runs(100).size(), 20u);
  EXPECT_EQ(History(file, Mode::read).show("tp=2").results.size(), 20u);
  EXPECT_EQ(with_sqlite(file, "PRAGMA journal_mode"), "wal");
}

TEST_F(HistoryTest, AnOlderFileKeepsItsRuns) {
  // A file of version 1, which had no accepted failures.
  {
    History history(file, Mode::write);
    history.add(run_on(1, {"pass"_verdict}));
  }
  with_sqlite(file, "DROP TABLE accepted; PRAGMA user_version = 1");
  History history(file, Mode::write);
  EXPECT_EQ(history.show("tp=1").results.size(), 1u);
  EXPECT_TRUE(history.accepted().empty());
  EXPECT_EQ(with_sqlite(file, "PRAGMA user_version"), "2");
}

TEST_F(HistoryTest, WhatCannotBeUsedIsRefusedAndNotChanged) {
  struct Row {
    const char* name;
    std::function<void()> make;
    const char* message;
  };
  const Row rows[] = {
      {"text", [&] { std::ofstream(file) << std::string(5000, 'x'); }, "the history is damaged"},
      {"cut off",
       [&] {
         History(file, Mode::write).add(run_on(1, {"pass"_verdict}));
         with_sqlite(file, "PRAGMA wal_checkpoint(TRUNCATE)");
         fs::resize_file(file, fs::file_size(file) / 2);
       },
       "the history is damaged"},
      {"of another program", [&] { with_sqlite(file, "CREATE TABLE t (x)"); },
       "this file is no history"},
      {"newer",
       [&] {
         History(file, Mode::write).add(run_on(1, {"pass"_verdict}));
         with_sqlite(file, "PRAGMA user_version = 99");
       },
       "of a newer version"},
  };
  for (const Row& row : rows) {
    fs::remove(file);
    row.make();
    const std::string before = record::read_text(file);
    for (const Mode mode : {Mode::read, Mode::write}) {
      const std::string message =
          refusal([&] { History(file, mode).add(run_on(2, {"pass"_verdict})); });
      EXPECT_NE(message.find(row.message), std::string::npos) << row.name << ": " << message;
      EXPECT_EQ(record::read_text(file), before) << row.name;
    }
  }
}

TEST_F(HistoryTest, ALockedFileIsNamedAfterTheWait) {
  History first(file, Mode::write);
  Database holder(file, Mode::write, 0);
  Transaction transaction(holder);
  const std::string message =
      refusal([&] { History(file, Mode::write, 50).add(run_on(1, {"pass"_verdict})); });
  EXPECT_NE(message.find("the history is locked"), std::string::npos) << message;
}

TEST_F(HistoryTest, AFullDiskKeepsWhatWasThere) {
  History(file, Mode::write).add(run_on(1, {"pass"_verdict}));
  {
    const record::FullDisk full(1000);
    const std::string message =
        refusal([&] { History(file, Mode::write).add(run_on(2, {"pass"_verdict})); });
    EXPECT_NE(message.find("can't write the history"), std::string::npos) << message;
  }
  EXPECT_EQ(History(file, Mode::read).runs(10).size(), 1u);
}

TEST_F(HistoryTest, AcceptedFailuresExpireAndExcuseNoOtherFailure) {
  using State = BaselineDifference::State;
  const RunResult run =
      run_on(6, {"fail.hang.replay"_verdict, "fail.numerics"_verdict, "fail.numerics"_verdict,
                 "pass"_verdict, "fail.capture"_verdict, "pass"_verdict});
  History history(file, Mode::write);
  const auto accept = [&](int number, const std::string& verdict, const std::string& until) {
    history.accept({.case_id = std::string(16, static_cast<char>('0' + number)),
                    .name = "tp=" + std::to_string(number),
                    .verdict = verdict,
                    .reason = "known upstream",
                    .owner = "me",
                    .until = until,
                    .accepted = "2026-11-01",
                    .run_id = "r"});
  };
  accept(1, "fail.hang.replay", "2026-12-01");
  accept(2, "fail.numerics", "2026-11-25");
  accept(3, "fail.capture", "2026-12-01");
  accept(4, "fail.numerics", "2026-12-01");
  const auto states = [&](const std::string& today) {
    std::map<std::string, State> found;
    for (const auto& one : baseline_difference(run, history.accepted(), today))
      found[one.name] = one.state;
    return found;
  };
  EXPECT_EQ(states("2026-11-25"), (std::map<std::string, State>{{"tp=1", State::accepted},
                                                                {"tp=2", State::accepted},
                                                                {"tp=3", State::changed},
                                                                {"tp=4", State::healed},
                                                                {"tp=5", State::fresh}}));
  EXPECT_EQ(states("2026-11-26").at("tp=2"), State::expired);

  const auto code = [&](std::vector<record::Verdict> verdicts, const std::string& today) {
    const RunResult later = run_on(7, std::move(verdicts));
    return exit_code(later, baseline_difference(later, history.accepted(), today));
  };
  EXPECT_EQ(code({"fail.hang.replay"_verdict, "fail.numerics"_verdict}, "2026-11-25"),
            record::ExitCode::ok);
  EXPECT_EQ(code({"pass"_verdict, "fail.numerics"_verdict}, "2026-11-26"),
            record::ExitCode::product)
      << "an expired excuse fails";
  EXPECT_EQ(code({"pass"_verdict, "not_run"_verdict}, "2026-11-25"), record::ExitCode::interrupted)
      << "what was not shown is no pass";
}

TEST_F(HistoryTest, SaysWhatIsNewSinceTheLastRunOfTheProfile) {
  History history(file, Mode::write);
  const auto pass = "pass"_verdict, bad = "fail.capture"_verdict;
  history.add(run_on(1, {pass, bad, pass, pass}));
  history.add(run_on(2, {pass, bad, bad, pass}));
  RunResult other_profile = run_on(3, {bad, bad, bad, bad});
  other_profile.run.profile = "nightly";
  history.add(other_profile);
  RunResult other_device = run_on(4, {bad});
  other_device.run.device = "cuda";
  history.add(other_device);
  history.add(run_on(9, {bad}));  // began after the run that is asked about
  const CrossRunFacts facts = history.before(run_on(5, {bad, pass, bad, pass, bad}, "2.29"));
  EXPECT_EQ(facts.unknown, "");
  EXPECT_EQ(facts.last_run, "20261102-101500-3f2a");
  EXPECT_EQ(facts.broke, std::vector<std::size_t>{0});
  EXPECT_EQ(facts.healed, std::vector<std::size_t>{1});
  ASSERT_EQ(facts.runs.size(), 3u);
  EXPECT_EQ(facts.runs[2].run_id, "20261103-101500-3f2a");
  EXPECT_EQ(facts.verdicts[2], (std::vector<std::optional<record::Verdict>>{pass, bad, bad}));
  EXPECT_EQ(facts.verdicts[4], std::vector<std::optional<record::Verdict>>(3))
      << "no earlier run has the case";
  ASSERT_EQ(facts.stack_changes.size(), 1u);
  EXPECT_EQ(facts.stack_changes[0].right, "2.29");

  ASSERT_TRUE(facts.failing.contains(2) && facts.failing.contains(4));
  EXPECT_FALSE(facts.failing.contains(1)) << "it passes now";
  EXPECT_EQ(facts.failing.at(2).first_bad->run_id, "20261102-101500-3f2a");
  EXPECT_EQ(facts.failing.at(2).last_good->run_id, "20261101-101500-3f2a");
  EXPECT_TRUE(facts.failing.at(2).changed.empty()) << "both are on NCCL 2.28";
  EXPECT_EQ(facts.failing.at(4).first_bad->run_id, "20261105-101500-3f2a");
  EXPECT_FALSE(facts.failing.at(4).last_good);
  EXPECT_TRUE(facts.flaky.empty()) << "no run before was on NCCL 2.29";
}

TEST_F(HistoryTest, CountsFailuresOnTheStackOfTheRun) {
  History history(file, Mode::write);
  for (int day = 1; day <= 30; ++day)
    history.add(run_on(day, {day % 4 == 0 ? "fail.capture"_verdict : "pass"_verdict},
                       day <= 20 ? "2.28" : "2.29"));
  const CrossRunFacts facts = history.before(run_on(29, {"fail.capture"_verdict}, "2.29"));
  EXPECT_EQ(facts.runs.size(), static_cast<std::size_t>(kEarlierRuns));
  EXPECT_EQ(facts.runs.back().run_id, "20261128-101500-3f2a") << "the run itself counts once";
  ASSERT_TRUE(facts.flaky.contains(0));
  EXPECT_EQ(facts.flaky.at(0).failed, 3) << "days 24, 28 and 29";
  EXPECT_EQ(facts.flaky.at(0).trials, 9);
}

TEST_F(HistoryTest, OfTheFirstRunNothingIsKnownOfEarlierOnes) {
  History history(file, Mode::write);
  history.add(run_on(2, {"pass"_verdict}));
  EXPECT_EQ(history.before(run_on(1, {"pass"_verdict})).unknown,
            "The history has no earlier run on this kind of device.");
}

}  // namespace
}  // namespace graphproof::reports
