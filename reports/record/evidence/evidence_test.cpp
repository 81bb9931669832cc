#include "reports/record/evidence/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::record {
namespace {

StartLine start_of(int rank) {
  return {.revision = kEvidenceRevision,
          .case_id = "9d2c0f6a1b3e4d57",
          .rank = rank,
          .world_size = 2,
          .device = "sim",
          .pid = 4710,
          .fault = "none",
          .t_ms = 1000};
}
const PhaseLine kPhase{.phase = Phase::eager, .arm = "eager_a", .ms = 1.5};

std::string text_of(const Json& line) { return line.dump() + "\n"; }

TEST(Evidence, IsInTheFileBeforeTheWriterGoesOn) {
  const ScratchFolder folder;
  const auto file = folder.path() / "attempt-1" / evidence_file_name(3);
  EvidenceWriter writer(file);
  writer.write(start_of(3));
  EXPECT_EQ(read_text(file), text_of(line_json(start_of(3))));
  writer.write(kPhase);
  EXPECT_EQ(writer.lines(), 2);
  EXPECT_EQ(writer.bytes(), static_cast<std::int64_t>(read_text(file).size()));
}

TEST(Evidence, ItsEndCountsTheLinesBeforeIt) {
  const ScratchFolder folder;
  const auto file = folder.path() / "rank-0.evidence.jsonl";
  {
    EvidenceWriter writer(file);
    writer.write(start_of(0));
    writer.write(kPhase);
    writer.end(true, Phase::teardown_comm, 1400);
  }
  const Evidence evidence = read_evidence(file);
  EXPECT_TRUE(evidence.complete());
  ASSERT_EQ(evidence.of<EndLine>().size(), 1u);
  EXPECT_EQ(evidence.of<EndLine>()[0].lines, 2);
  EXPECT_EQ(evidence.lines.back().line, 3u);
  ASSERT_EQ(evidence.of<PhaseLine>().size(), 1u);
  EXPECT_EQ(evidence.of<PhaseLine>()[0].ms, 1.5);
}

TEST(Evidence, WithoutItsTrueEndIsNotComplete) {
  const auto end_of = [](bool complete, std::int64_t lines) {
    return text_of(line_json(EndLine{.complete = complete, .lines = lines}));
  };
  const std::string start = text_of(line_json(start_of(0))), phase = text_of(line_json(kPhase));
  std::string torn = start + end_of(true, 1);
  torn.pop_back();
  struct Row {
    std::string text;
    const char* why;
  };
  const Row kRows[] = {
      {"", "empty"},
      {start, "no end"},
      {start + end_of(false, 1), "the end line is incomplete"},
      {start + end_of(true, 2), "a line is lost"},
      {torn, "torn in its newline"},
      {start + end_of(true, 1) + phase, "goes on after its end"},
      {phase + end_of(true, 1), "no start"},
      {start + "what\n" + end_of(true, 1), "a broken line"},
      {start + "{\"kind\":\"phase\"}\n" + end_of(true, 2), "a line without its fields"},
      {start + "{\"kind\":\"surprise\"}\n" + end_of(true, 2), "a line of an unknown kind"},
  };
  const ScratchFolder folder;
  const auto file = folder.path() / "rank-0.evidence.jsonl";
  for (const Row& row : kRows) {
    std::ofstream(file) << row.text;
    EXPECT_FALSE(read_evidence(file).complete()) << row.why;
  }
  std::ofstream(file) << start + end_of(true, 1);
  EXPECT_TRUE(read_evidence(file).complete());
}

TEST(Evidence, ALineThatDoesNotFitItsTableIsNamedAndKeptOutOfTheTypedOnes) {
  const ScratchFolder folder;
  const auto file = folder.path() / "rank-0.evidence.jsonl";
  Json damaged = line_json(kPhase);
  damaged["ms"] = "long";
  std::ofstream(file) << text_of(line_json(start_of(0))) << text_of(line_json(kPhase))
                      << text_of(damaged) << "{\"kind\":\"surprise\"}\n";
  const Evidence evidence = read_evidence(file);
  EXPECT_EQ(evidence.lines.size(), 4u);
  EXPECT_EQ(evidence.of<PhaseLine>().size(), 1u);
  ASSERT_EQ(evidence.damaged.size(), 2u);
  EXPECT_EQ(to_text(evidence.damaged[0]),
            "line 3 of kind `phase`: `ms` is \"long\", want a number");
  EXPECT_EQ(to_text(evidence.damaged[1]),
            "line 4 of kind `surprise`: `kind` is surprise, want a known kind");
}

TEST(Evidence, AnUnknownKindOfAnOlderRevisionIsNoDamage) {
  const ScratchFolder folder;
  const auto file = folder.path() / "rank-0.evidence.jsonl";
  StartLine start = start_of(0);
  start.revision = std::nullopt;
  std::ofstream(file) << text_of(line_json(start)) << "{\"kind\":\"surprise\"}\n"
                      << text_of(line_json(EndLine{.complete = true, .lines = 2}));
  const Evidence evidence = read_evidence(file);
  EXPECT_EQ(evidence.revision(), 1);
  EXPECT_TRUE(evidence.complete());
}

TEST(Evidence, CutAtEveryByteGivesItsWholeLinesAndSaysWhatIsDropped) {
  const ScratchFolder folder;
  const std::string text = "{\"kind\":\"start\",\"rank\":0}\n{\"kind\":\"step\",\"loss\":[1,2]}\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto file = folder.path() / "rank-0.evidence.jsonl";
    std::ofstream(file) << text.substr(0, cut);
    const Evidence evidence = read_evidence(file);
    const auto whole = static_cast<std::size_t>(
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut), '\n'));
    EXPECT_EQ(evidence.lines.size(), whole) << cut;
    const bool torn = cut > 0 && text[cut - 1] != '\n';
    ASSERT_EQ(evidence.dropped.size(), torn ? 1u : 0u) << cut;
    if (!torn) continue;
    EXPECT_NE(evidence.dropped[0].find("line " + std::to_string(whole + 1) + " is torn after"),
              std::string::npos)
        << evidence.dropped[0];
  }
}

TEST(Evidence, OfTwoAttemptsNeverMixes) {
  const ScratchFolder folder;
  const EvidenceWriter first(folder.path() / "rank-0.evidence.jsonl");
  try {
    EvidenceWriter second(folder.path() / "rank-0.evidence.jsonl");
    FAIL() << "no error";
  } catch (const WriteError& error) {
    EXPECT_EQ(error.message().got, "File exists");
    EXPECT_EQ(error.message().next, "use a fresh attempt folder, or make it writable");
  }
}

TEST(Evidence, OfAnAttemptIsInRankOrder) {
  const ScratchFolder folder;
  for (const int rank : {11, 0, 2})
    EvidenceWriter(folder.path() / evidence_file_name(rank)).write(start_of(rank));
  const std::vector<Evidence> ranks = read_evidence_of_attempt(folder.path());
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[1].of<StartLine>()[0].rank, 2);
  EXPECT_EQ(ranks[2].of<StartLine>()[0].rank, 11);
  EXPECT_TRUE(read_evidence_of_attempt(folder.path() / "absent").empty());
}

TEST(Evidence, AFullDiskIsAnErrorThatNamesFileAndLine) {
  const ScratchFolder folder;
  EvidenceWriter writer(folder.path() / "rank-0.evidence.jsonl");
  writer.write(kPhase);
  const FullDisk full(64);
  try {
    writer.write(PhaseLine{.phase = Phase::eager, .arm = std::string(200, 'x')});
    FAIL() << "no error";
  } catch (const WriteError& error) {
    EXPECT_NE(error.message().what.find("rank-0.evidence.jsonl"), std::string::npos);
    EXPECT_EQ(error.message().want, "line 2 (phase) written whole");
  }
}

TEST(Evidence, LinesOfThreadsStayWhole) {
  const ScratchFolder folder;
  const auto file = folder.path() / "rank-0.evidence.jsonl";
  constexpr int kThreads = 4, kLines = 200;
  {
    EvidenceWriter writer(file);
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i)
      threads.emplace_back([&writer] {
        for (int line = 0; line < kLines; ++line)
          writer.write(PhaseLine{.phase = Phase::eager, .arm = std::string(300, 'x')});
      });
  }
  const Evidence evidence = read_evidence(file);
  EXPECT_EQ(evidence.lines.size(), static_cast<std::size_t>(kThreads * kLines));
  EXPECT_TRUE(evidence.dropped.empty());
}

}  // namespace
}  // namespace graphproof::record
