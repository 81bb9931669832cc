#include "suites/checks/watched/watched_check_table.h"

#include <gtest/gtest.h>

#include <set>

#include "matrix/catalogue/catalogue.h"
#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

const matrix::CheckTable& table() {
  static const matrix::CheckTable loaded = matrix::load_checks(matrix::load_axes());
  return loaded;
}

template <class... Lines>
std::set<std::string> names_of(record::Kinds<Lines...>) {
  return {std::string(Lines::kKind)...};
}

/// The parts that a check can need; watched_process.cpp gives these names.
const std::set<std::string>& parts() {
  static const std::set<std::string> kParts = {"driver_calls",   "driver_words",
                                               "python",         "blocks_of_the_allocator",
                                               "training_steps", "nccl_calls"};
  return kParts;
}

void expect_no_pass(const WatchedJob& job) {
  for (const record::CheckResult& result : judge_watched(job, table()).checks)
    EXPECT_EQ(record::name(result.result), "unexercised")
        << result.check << ": " << record::to_text(result.message);
}

TEST(WatchedCheckTable, EveryCheckPassesTheCleanJob) {
  const record::WatchedChecks checks = judge_watched(clean_job(), table());
  EXPECT_EQ(checks.checks.size(), all_watched_checks().size());
  for (const record::CheckResult& result : checks.checks)
    EXPECT_EQ(record::name(result.result), "pass")
        << result.check << ": " << record::to_text(result.message);
  EXPECT_TRUE(checks.notes.empty()) << checks.notes.front();
}

/// As torchrun leaves its workers on two hosts.
WatchedJob job_of_torchrun() {
  WatchedJob job = clean_job();
  for (std::size_t rank = 0; rank < job.processes.size(); ++rank) {
    record::WatchedProcessLine& line = line_of(job, rank);
    line.host = rank == 0 ? "one" : "two";
    line.settings["WORLD_SIZE"] = "2";
  }
  return job;
}

TEST(WatchedCheckTable, ARankThatLeftNoEvidenceIsCounted) {
  WatchedJob job = job_of_torchrun();
  EXPECT_FALSE(judge_watched(job, table()).figures.contains("ranks_without_evidence"));
  job.processes.pop_back();
  EXPECT_EQ(judge_watched(job, table()).figures.at("ranks_without_evidence"), 1);
  // A process of a job script has Slurm's variables for the whole job.
  line_of(job, 0).settings = {{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}};
  EXPECT_FALSE(judge_watched(job, table()).figures.contains("ranks_without_evidence"));
}

TEST(WatchedCheckTable, TheRankThatFailedIsNamedWithItsHost) {
  WatchedJob job = job_of_torchrun();
  EXPECT_TRUE(judge_watched(job, table()).failed_processes.empty());
  // torchrun ends the other one by a signal and then fails itself.
  line_of(job, 0).state = "cut_short";
  line_of(job, 0).exit_status.reset();
  line_of(job, 1).exit_status = 1;
  EXPECT_TRUE(judge_watched(job, table()).failed_processes.empty()) << "the command ended well";
  job.run.exit_code = 1;
  auto failed = judge_watched(job, table()).failed_processes;
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].host, "two");
  EXPECT_EQ(failed[0].rank, 1);
  EXPECT_EQ(failed[0].exit_status, 1);
  EXPECT_EQ(failed[0].process, job.processes[1].name);
  job.processes.insert(job.processes.begin(), clean_job().processes[0]);
  line_of(job, 0).rank.reset();
  line_of(job, 0).exit_status = 1;
  failed = judge_watched(job, table()).failed_processes;
  ASSERT_EQ(failed.size(), 2u);
  EXPECT_EQ(failed[0].rank, 1) << "and not the launcher of the ranks, which fails as they do";
  job.processes.erase(job.processes.begin());
  line_of(job, 1).exit_status = 0;
  failed = judge_watched(job, table()).failed_processes;
  ASSERT_EQ(failed.size(), 1u) << "without a status there are those without one";
  EXPECT_EQ(failed[0].host, "one");
}

TEST(WatchedCheckTable, EveryNeedIsAPartOrAKindOfLines) {
  const std::set<std::string> kinds = names_of(record::WatchedKinds());
  for (const matrix::CheckEntry& entry : table().checks()) {
    if (!entry.watched) continue;
    for (const std::string& need : entry.watched->needs)
      EXPECT_TRUE(parts().contains(need) || kinds.contains(need)) << entry.check << ": " << need;
  }
}

TEST(WatchedCheckTable, NoCheckPassesWithoutAPartThatItNeeds) {
  for (const std::string& part : parts()) {
    WatchedJob job = clean_job();
    hide(job, part);
    for (const record::CheckResult& result : judge_watched(job, table()).checks) {
      const auto& needs = table().find(result.check)->watched->needs;
      if (std::ranges::count(needs, part) == 0) continue;
      EXPECT_EQ(record::name(result.result), "unexercised") << result.check << " without " << part;
      EXPECT_NE(result.message.got.find("hidden by a test"), std::string::npos);
    }
  }
}

TEST(WatchedCheckTable, NothingPassesIfLinesWereLost) {
  WatchedJob job = clean_job();
  hide(job, "lines");
  expect_no_pass(job);
  job = clean_job();
  process_of(job, 1).evidence.dropped = {"a record is cut off"};
  expect_no_pass(job);
}

TEST(WatchedCheckTable, NothingPassesIfTheProbeWasSwitchedOff) {
  WatchedJob job = clean_job();
  hide(job, "everything after an error of the probe");
  expect_no_pass(job);
}

TEST(WatchedCheckTable, NothingPassesIfAFileCannotBeRead) {
  WatchedJob job = clean_job();
  job.unread = {"a process left a file that cannot be used"};
  expect_no_pass(job);
  EXPECT_EQ(judge_watched(job, table()).notes, job.unread);
}

TEST(WatchedCheckTable, NothingPassesWithoutAProcess) {
  WatchedJob job = clean_job();
  job.processes.clear();
  expect_no_pass(job);
  EXPECT_EQ(judge_watched(job, table()).notes.size(), 1u);
}

TEST(WatchedCheckTable, NothingPassesWithoutAGraph) {
  WatchedJob job = clean_job();
  for (std::size_t rank : {0u, 1u}) {
    record::WatchedProcessLine line = line_of(job, rank);
    line.captures = line.executables = 0;
    process_of(job, rank).evidence = {};
    lines<record::WatchedProcessLine>(job, rank) = {line};
  }
  expect_no_pass(job);
}

/// Where a profiler holds CUPTI in one process, it seems to have no graphs.
TEST(WatchedCheckTable, AProcessWhoseDriverCallsWereNotSeenMayHaveGraphs) {
  WatchedJob job = clean_job();
  record::WatchedProcessLine line = line_of(job, 1);
  line.captures = line.executables = 0;
  process_of(job, 1).evidence = {};
  lines<record::WatchedProcessLine>(job, 1) = {line};
  EXPECT_EQ(result_of("D19.capture_status", job).result, record::Result::pass)
      << "a process without graphs is sound";
  EXPECT_FALSE(judge_watched(job, table()).figures.contains("processes_without_driver_calls"));
  line_of(job, 1).unseen.push_back({.what = "driver_calls", .why = "a profiler holds CUPTI"});
  const record::WatchedChecks checks = judge_watched(job, table());
  EXPECT_EQ(checks.figures.at("processes_without_driver_calls"), 1);
  for (const record::CheckResult& result : checks.checks) {
    const auto& needs = table().find(result.check)->watched->needs;
    if (std::ranges::count(needs, "driver_calls") == 0) continue;
    EXPECT_NE(result.result, record::Result::pass) << result.check;
    if (result.check == "D19.capture_status") {
      EXPECT_NE(result.message.got.find("a profiler holds CUPTI"), std::string::npos);
    }
  }
}

TEST(WatchedCheckTable, NothingPassesIfARankEndedBeforeItsFirstGraph) {
  WatchedJob job = clean_job();
  record::WatchedProcessLine line = line_of(job, 1);
  line.captures = line.executables = 0;
  process_of(job, 1).evidence = {};
  lines<record::WatchedProcessLine>(job, 1) = {line};
  EXPECT_EQ(rank_lost_early(job), "") << "a rank without graphs that ends well is sound";
  line_of(job, 1).state = "cut_short";
  EXPECT_EQ(rank_lost_early(job), "rank 1 (node-1.4712)");
  expect_no_pass(job);
  // A worker with the variables of rank 0, such as one that compiles, may be ended at any time.
  line_of(job, 1).rank = 0;
  EXPECT_EQ(rank_lost_early(job), "");
}

TEST(WatchedCheckTable, ADefectCountsMoreThanMissingEvidence) {
  WatchedJob job = clean_job();
  lines<record::WatchedCaptureLine>(job, 1)[0].result = 901;
  hide(job, "driver_calls");
  EXPECT_EQ(result_of("D19.capture_status", job).result, record::Result::fail);
}

TEST(WatchedCheckTable, FurtherDefectsAreCounted) {
  WatchedJob job = clean_job();
  for (std::size_t capture : {0u, 1u, 2u})
    lines<record::WatchedCaptureLine>(job, 1)[capture].result = 901;
  EXPECT_NE(result_of("D19.capture_status", job).message.got.find("2 more of this kind"),
            std::string::npos);
}

TEST(WatchedCheckTable, NotesNameWhatWasNotSeenOnce) {
  WatchedJob job = clean_job();
  job.run.notes = {"what the launcher says is in watched.json"};
  job.notes = {"a log belongs to no process"};
  hide(job, "nccl_calls");
  EXPECT_EQ(judge_watched(job, table()).notes,
            (std::vector<std::string>{
                "a log belongs to no process",
                "rank 0 (node-1.4711): nccl_calls was not seen: hidden by a test"}));
}

}  // namespace
}  // namespace graphproof::checks::watched
