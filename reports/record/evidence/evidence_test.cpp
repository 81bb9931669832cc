#include "reports/record/evidence/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"

namespace graphproof::record {
namespace {

TEST(Evidence, IsInTheFileBeforeTheWriterGoesOn) {
  const ScratchFolder folder;
  const auto file = folder.path() / "attempt-1" / evidence_file_name(3);
  EvidenceWriter writer(file);
  writer.write("start", {{"rank", 3}});
  EXPECT_EQ(read_text(file), "{\"kind\":\"start\",\"rank\":3}\n");
  writer.write("step", {{"loss", 1.5}});
  EXPECT_EQ(writer.lines(), 2);
  EXPECT_EQ(writer.bytes(), static_cast<std::int64_t>(read_text(file).size()));
}

TEST(Evidence, ItsEndCountsTheLinesBeforeIt) {
  const ScratchFolder folder;
  const auto file = folder.path() / "rank-0.evidence.jsonl";
  {
    EvidenceWriter writer(file);
    writer.write("start", {});
    writer.write("step", {{"loss", 1.5}});
    writer.end(true, Phase::teardown_comm, 1400);
  }
  const Evidence evidence = read_evidence(file);
  EXPECT_TRUE(evidence.complete());
  EXPECT_EQ(evidence.lines.back().fields["lines"], 2);
  EXPECT_EQ(evidence.lines.back().line, 3u);
  EXPECT_EQ(evidence.of("step").size(), 1u);
}

TEST(Evidence, WithoutItsTrueEndIsNotComplete) {
  struct Row {
    const char* text;
    const char* why;
  };
  const Row kRows[] = {
      {"", "empty"},
      {"{\"kind\":\"start\"}\n", "no end"},
      {"{\"kind\":\"start\"}\n{\"kind\":\"end\",\"complete\":false,\"lines\":1}\n",
       "end says incomplete"},
      {"{\"kind\":\"start\"}\n{\"kind\":\"end\",\"complete\":true,\"lines\":2}\n",
       "a line is lost"},
      {"{\"kind\":\"start\"}\n{\"kind\":\"end\",\"complete\":true,\"lines\":1}",
       "torn in its newline"},
      {"{\"kind\":\"start\"}\n{\"kind\":\"end\",\"complete\":true,\"lines\":1}\n{\"kind\":\"step\"}"
       "\n",
       "goes on after its end"},
      {"{\"kind\":\"step\"}\n{\"kind\":\"end\",\"complete\":true,\"lines\":1}\n", "no start"},
      {"{\"kind\":\"start\"}\nwhat\n{\"kind\":\"end\",\"complete\":true,\"lines\":1}\n",
       "a broken line"},
  };
  const ScratchFolder folder;
  for (const Row& row : kRows) {
    const auto file = folder.path() / "rank-0.evidence.jsonl";
    std::ofstream(file) << row.text;
    EXPECT_FALSE(read_evidence(file).complete()) << row.why;
  }
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
    EvidenceWriter(folder.path() / evidence_file_name(rank)).write("start", {{"rank", rank}});
  const std::vector<Evidence> ranks = read_evidence_of_attempt(folder.path());
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[1].lines.at(0).fields.at("rank"), 2);
  EXPECT_EQ(ranks[2].lines.at(0).fields.at("rank"), 11);
  EXPECT_TRUE(read_evidence_of_attempt(folder.path() / "absent").empty());
}

TEST(Evidence, AFullDiskIsAnErrorThatNamesFileAndLine) {
  const ScratchFolder folder;
  EvidenceWriter writer(folder.path() / "rank-0.evidence.jsonl");
  writer.write("start", {});
  const FullDisk full(64);
  try {
    writer.write("step", {{"text", std::string(200, 'x')}});
    FAIL() << "no error";
  } catch (const WriteError& error) {
    EXPECT_NE(error.message().what.find("rank-0.evidence.jsonl"), std::string::npos);
    EXPECT_EQ(error.message().want, "line 2 (step) written whole");
  }
}

TEST(Evidence, NumbersThatJsonLacksAreSpelledAndReadBack) {
  const ScratchFolder folder;
  const auto file = folder.path() / "rank-0.evidence.jsonl";
  EvidenceWriter writer(file);
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               inf = std::numeric_limits<double>::infinity();
  writer.write("step", {{"loss", {nan, 1.0}}, {"inner", {{"a", -inf}}}, {"b", inf}});
  EXPECT_EQ(
      read_text(file),
      "{\"kind\":\"step\",\"loss\":[\"nan\",1.0],\"inner\":{\"a\":\"-inf\"},\"b\":\"inf\"}\n");
  const Evidence evidence = read_evidence(file);
  EXPECT_TRUE(std::isnan(number_from(evidence.lines[0].fields["loss"][0])));
  EXPECT_EQ(number_from(evidence.lines[0].fields["inner"]["a"]), -inf);
  EXPECT_EQ(number_from(evidence.lines[0].fields["b"]), inf);
  EXPECT_THROW(number_from("fast"), ReadError);
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
          writer.write("step", {{"text", std::string(300, 'x')}});
      });
  }
  const Evidence evidence = read_evidence(file);
  EXPECT_EQ(evidence.lines.size(), static_cast<std::size_t>(kThreads * kLines));
  EXPECT_TRUE(evidence.dropped.empty());
}

}  // namespace
}  // namespace graphproof::record
