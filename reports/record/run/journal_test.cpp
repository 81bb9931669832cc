#include "reports/record/run/journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::record {
namespace {

Record record_of(const std::string& case_id, int attempt = 1) {
  return {.run_id = "20261121-101500-3f2a",
          .case_id = case_id,
          .name = "tp=2",
          .attempt = attempt,
          .context = {.device = "sim",
                      .isolation = "batch",
                      .engine = "local",
                      .start = "cold",
                      .batch = "b001"},
          .ranks = 2,
          .phase = Phase::teardown_process,
          .verdict = "pass"_verdict,
          .observed = "pass"_verdict,
          .rule = 90,
          .reason = "every required check passed",
          .checks = {.pass = 12},
          .figures = {{"eager_ms", 3.5}},
          .seconds = 0.42,
          .artefacts = "cases/" + case_id + "/attempt-1"};
}

TEST(Journal, GivesBackWhatWasAppended) {
  const ScratchFolder folder;
  const auto file = folder.path() / "journal.jsonl";
  Record failed = record_of("b");
  failed.verdict = "fail.numerics"_verdict;
  failed.failing = {
      {.check = "D01.lockstep",
       .rank = 1,
       .message = {.what = "w\xff\n", .got = "g", .want = "w", .why = "", .next = "n"}}};
  failed.phase = std::nullopt;
  {
    JournalWriter writer(file);
    writer.append(record_of("a"));
    EXPECT_EQ(read_journal(file).records.size(), 1u) << "on the disk before append() returns";
    writer.append(failed);
  }
  const JournalContent content = read_journal(file);
  ASSERT_EQ(content.records.size(), 2u);
  EXPECT_EQ(content.records[0], record_of("a"));
  failed.failing[0].message.what =
      "w\xef\xbf\xbd\n";  // bytes that are not UTF-8 become the replacement character
  EXPECT_EQ(content.records[1], failed);
  EXPECT_EQ(content.dropped, "");
}

TEST(Journal, AnAbsentFileIsEmpty) {
  EXPECT_TRUE(read_journal("/no/such/journal.jsonl").records.empty());
}

TEST(Journal, CutAtEveryByteKeepsTheWholeRecordsAndGoesOn) {
  const ScratchFolder folder;
  const std::string first = to_line(record_of("a")), second = to_line(record_of("b"));
  const std::string text = first + second;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto file = folder.path() / "journal.jsonl";
    std::ofstream(file, std::ios::trunc) << text.substr(0, cut);
    const std::size_t whole = cut == text.size() ? 2 : cut >= first.size() ? 1 : 0;
    const bool torn = cut != 0 && cut != first.size() && cut != text.size();

    const JournalContent content = read_journal(file);
    EXPECT_EQ(content.records.size(), whole) << cut;
    EXPECT_EQ(!content.dropped.empty(), torn) << cut;
    {
      JournalWriter writer(file);
      EXPECT_EQ(writer.dropped(), content.dropped) << cut;
      writer.append(record_of("c"));
    }
    const JournalContent after = read_journal(file);
    ASSERT_EQ(after.records.size(), whole + 1) << cut;
    EXPECT_EQ(after.records.back().case_id, "c") << cut;
    EXPECT_EQ(after.dropped, "") << cut;
  }
}

TEST(Journal, ATornLineIsNamedWithItsLength) {
  const ScratchFolder folder;
  const auto file = folder.path() / "journal.jsonl";
  std::ofstream(file) << to_line(record_of("a")) << "{\"schema\"";
  EXPECT_EQ(read_journal(file).dropped,
            file.string() +
                " line 2 is torn after 9 bytes and was dropped: its writer was "
                "stopped while writing it");
}

TEST(Journal, DamageInTheMiddleIsAnErrorWithItsLine) {
  const ScratchFolder folder;
  const auto file = folder.path() / "journal.jsonl";
  std::ofstream(file) << to_line(record_of("a")) << "what\n" << to_line(record_of("b"));
  try {
    read_journal(file);
    FAIL() << "no error";
  } catch (const ReadError& error) {
    EXPECT_NE(error.message().what.find("journal.jsonl line 2 is not JSON"), std::string::npos)
        << error.what();
  }
}

TEST(Journal, ASecondLauncherIsRefused) {
  const ScratchFolder folder;
  const auto file = folder.path() / "journal.jsonl";
  const JournalWriter first(file);
  try {
    JournalWriter second(file);
    FAIL() << "no error";
  } catch (const WriteError& error) {
    EXPECT_EQ(error.message().got, "another launcher holds it");
    EXPECT_EQ(error.message().want, "to be its only writer");
    EXPECT_EQ(error.message().next,
              "wait for the other launcher or stop it, or use another --run-dir");
  }
}

TEST(Journal, TheLockGoesWithItsWriter) {
  const ScratchFolder folder;
  const auto file = folder.path() / "journal.jsonl";
  {
    const JournalWriter first(file);
  }
  EXPECT_NO_THROW(JournalWriter second(file));
}

TEST(Journal, AKilledWriterLeavesNoLockAndNoLostRecord) {
  const ScratchFolder folder;
  const auto file = folder.path() / "journal.jsonl";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    JournalWriter writer(file);
    writer.append(record_of("a"));
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  JournalWriter next(file);
  EXPECT_EQ(read_journal(file).records.size(), 1u);
}

TEST(Journal, AFullDiskKeepsEveryEarlierRecordWhole) {
  const ScratchFolder folder;
  const auto file = folder.path() / "journal.jsonl";
  JournalWriter writer(file);
  writer.append(record_of("a"));
  const std::string before = read_text(file);
  {
    const FullDisk full(before.size() + 20);
    try {
      writer.append(record_of("b"));
      FAIL() << "no error";
    } catch (const WriteError& error) {
      EXPECT_NE(error.message().what.find("cannot write the record of case b to " + file.string()),
                std::string::npos);
      EXPECT_EQ(error.message().why, "the journal holds every earlier record");
    }
  }
  EXPECT_EQ(read_text(file), before);
  writer.append(record_of("c"));
  EXPECT_EQ(read_journal(file).records.size(), 2u);
}

TEST(Journal, TheLastRecordOfACaseCounts) {
  const auto last = last_records({record_of("a", 1), record_of("b", 1), record_of("a", 2)});
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last.at("a").attempt, 2);
}

}  // namespace
}  // namespace graphproof::record
