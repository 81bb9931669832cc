#include "reports/analysis/case_detail.h"

#include <gtest/gtest.h>

#include <fstream>

#include "reports/record/evidence/evidence.h"
#include "reports/record/testing/scratch_folder.h"
#include "reports/record/text/file.h"
#include "reports/testing/healthy_case.h"

namespace graphproof::reports {
namespace {

using record::operator""_verdict;

TEST(CaseDetail, TheMedianIsWithinTheIntervalOfItsSamples) {
  const auto interval = median_interval({5, 1, 4, 2, 3, 9, 7, 8, 6});
  ASSERT_TRUE(interval);
  EXPECT_EQ(interval->low, 2);
  EXPECT_EQ(interval->high, 8);
  EXPECT_FALSE(median_interval({1, 2, 3, 4})) << "too few to say anything";
}

TEST(CaseDetail, TheFilesWithTheNodesOfGraphsAreNamedOnce) {
  const record::ScratchFolder folder;
  for (int rank = 0; rank < 2; ++rank) {
    record::EvidenceWriter writer(folder.path() / record::evidence_file_name(rank));
    writer.write(record::NodeDumpLine{.arm = "solo_graph",
                                      .file = "rank-" + std::to_string(rank) + ".nodes.txt",
                                      .reason = "lockstep_graph differs from lockstep_eager",
                                      .bytes = 100});
  }
  EXPECT_EQ(node_dumps_text(record::read_evidence_of_attempt(folder.path())),
            "rank-0.nodes.txt, rank-1.nodes.txt (lockstep_graph differs from lockstep_eager)");
  EXPECT_EQ(node_dumps_text({}), "");
}

TEST(CaseDetail, ARankThatHangsIsOpenInItsLastPhaseAndShowsItsLog) {
  const record::ScratchFolder folder;
  const CaseResult failed = ended('3', "case", "fail.hang.replay"_verdict, 40);
  const auto attempt = folder.path() / failed.record.artefacts;
  std::filesystem::create_directories(attempt);
  for (int rank = 0; rank < 2; ++rank) {
    record::EvidenceWriter writer(attempt / record::evidence_file_name(rank));
    writer.write(record::StartLine{.case_id = failed.plan.id,
                                   .rank = rank,
                                   .world_size = 2,
                                   .device = "sim",
                                   .pid = 4710 + rank,
                                   .fault = "none",
                                   .t_ms = 1000 + 50 * rank});
    writer.write(record::PhaseLine{.phase = record::Phase::validate, .ms = 10});
    writer.write(record::PhaseLine{.phase = record::Phase::capture, .arm = "solo_graph", .ms = 30});
    writer.write(record::CaptureLine{.arm = "solo_graph",
                                     .graph = "training",
                                     .status = "ok",
                                     .mode = "thread_local",
                                     .nodes = 7,
                                     .census = {{"kernel", 7}},
                                     .signature = "149948249627c9e6",
                                     .warmups = 2});
    writer.write(record::MemoryLine{.arm = "solo_graph", .allocated = 100 + rank});
    writer.end(false, record::Phase::capture, 1234);
  }
  OutcomeInput input = healthy_case();
  input.context->ranks[1].case_ended = false;
  input.context->ranks[1].phase = record::Phase::replay;
  input.context->ranks[1].silent_ms = 300;
  input.context->ranks[1].log = {.file = "rank.log", .begin = 6, .end = 30};
  record::write_json(attempt / "context.json", record::to_json(*input.context));
  std::ofstream(folder.path() / "rank.log")
      << "other\nNCCL WARN it waits\nand more of another case";

  const CaseDetail detail = read_case_detail(folder.path(), failed.record);
  ASSERT_EQ(detail.ranks.size(), 2u);
  EXPECT_EQ(detail.ranks[1].phases[1].begin_ms, 60) << "it began 50 ms after rank 0";
  ASSERT_EQ(detail.ranks[1].phases.size(), 3u);
  EXPECT_EQ(detail.ranks[1].phases[2].phase, "replay");
  EXPECT_FALSE(detail.ranks[1].phases[2].ended);
  EXPECT_EQ(detail.ranks[1].phases[2].begin_ms, 100) << "silent for 300 of 400 ms";
  EXPECT_EQ(detail.ranks[0].phases.size(), 2u);
  EXPECT_EQ(detail.ranks[1].peak_bytes.at("allocated"), 101);
  EXPECT_EQ(detail.ranks[1].log_tail, "NCCL WARN it waits\nand m");
  ASSERT_EQ(detail.graphs.size(), 1u);
  EXPECT_EQ(detail.graphs[0].nodes, 7);
  const auto span = read_attempt_span(folder.path(), failed.record);
  ASSERT_TRUE(span);
  EXPECT_EQ(span->begin_ms, 1000);
  EXPECT_EQ(span->end_ms, 1234);
}

TEST(CaseDetail, OfALogOfAGigabyteOnlyTheEndIsRead) {
  const record::ScratchFolder folder;
  const CaseResult failed = ended('3', "case", "fail.silent"_verdict, 46);
  const auto attempt = folder.path() / failed.record.artefacts;
  std::filesystem::create_directories(attempt);
  constexpr std::int64_t kSize = std::int64_t{1} << 30;
  {
    std::ofstream log(folder.path() / "rank.log", std::ios::binary);
    log.seekp(kSize - 20);  // a hole, which needs no space on the disk
    log << "\nthe end\x1b[2J of it\n";
  }
  OutcomeInput input = healthy_case();
  for (record::RankContext& rank : input.context->ranks)
    rank.log = {.file = "rank.log", .begin = 0, .end = kSize};
  record::write_json(attempt / "context.json", record::to_json(*input.context));
  const CaseDetail detail = read_case_detail(folder.path(), failed.record);
  ASSERT_EQ(detail.ranks.size(), 2u);
  EXPECT_LE(detail.ranks[0].log_tail.size(), 4096u);
  EXPECT_NE(detail.ranks[0].log_tail.find("the end"), std::string::npos);
}

TEST(CaseDetail, DamagedFilesAddNothing) {
  const record::ScratchFolder folder;
  const CaseResult failed = ended('3', "case", "fail.silent"_verdict, 46);
  const auto attempt = folder.path() / failed.record.artefacts;
  std::filesystem::create_directories(attempt / record::evidence_file_name(0));  // no file
  std::ofstream(attempt / "context.json") << "{\"schema\": \"graphproof-con";
  EXPECT_TRUE(read_case_detail(folder.path(), failed.record).ranks.empty());
  EXPECT_TRUE(read_errors(folder.path(), failed.record).empty());
}

TEST(CaseDetail, AnAbsentFolderAddsNothing) {
  const CaseResult one = ended('1', "case", "pass"_verdict, 90);
  EXPECT_TRUE(read_case_detail("/nonexistent", one.record).ranks.empty());
  EXPECT_FALSE(read_attempt_span("/nonexistent", one.record));
}

}  // namespace
}  // namespace graphproof::reports
