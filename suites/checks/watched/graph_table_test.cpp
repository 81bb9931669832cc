#include "suites/checks/watched/graph_table.h"

#include <gtest/gtest.h>

#include "suites/checks/watched/testing/clean_job.h"

namespace graphproof::checks::watched {
namespace {

TEST(GraphTable, HasARowForEachGraphOfEachProcess) {
  std::vector<std::string> notes;
  const std::vector<record::GraphRow> rows = graph_table(clean_job(), notes);
  ASSERT_EQ(rows.size(), 16u);
  EXPECT_TRUE(notes.empty());
  const record::GraphRow& row = rows[0];
  EXPECT_EQ(row.process, "node-1.4711");
  EXPECT_EQ(row.rank, 0);
  EXPECT_EQ(row.captured_at, "/data/train.py:41 step");
  EXPECT_EQ(row.thread, "python3 (4711)");
  EXPECT_EQ(row.replays, 100);
  EXPECT_EQ(row.replays_per_step_most, 1);
  EXPECT_EQ(row.pool_bytes, 20 * 1024 * 1024);
  EXPECT_EQ(row.kernels.front(), (record::KernelCount{.kernel = "scale", .count = 17}));
  EXPECT_DOUBLE_EQ(row.kernels_between.value(), 5.0);
  // 18 kernels 100 times, of 206 launches of as many kernels and 600 outside.
  EXPECT_DOUBLE_EQ(row.launch_share.value(), 1800.0 / (206 * 18 + 600));
}

TEST(GraphTable, NamesWhatRunsBeforeAReplay) {
  WatchedJob job = clean_job();
  lines<record::BetweenReplaysLine>(job, 0) = {
      {.executable = 1, .what = "wait", .name = "cuStreamSynchronize", .count = 100},
      {.executable = 1, .what = "kernel", .name = "_Z5scalePfi", .count = 250},
      {.executable = 2, .what = "kernel", .name = "other", .count = 7},
      {.executable = 0, .what = "other", .count = 3}};
  std::vector<std::string> notes;
  const std::vector<record::GraphRow> rows = graph_table(job, notes);
  const std::vector<record::BetweenReplays> want = {
      {.what = "kernel", .name = "scale", .per_replay = 2.5},
      {.what = "wait", .name = "cuStreamSynchronize", .per_replay = 1}};
  EXPECT_EQ(rows[0].between, want);
  EXPECT_FALSE(rows[2].between) << "nothing was seen";
  lines<record::ReplaysLine>(job, 0)[0].launches_after_another = 50;
  EXPECT_DOUBLE_EQ(graph_table(job, notes)[0].between->front().per_replay, 5)
      << "of the replays that have one before";
  EXPECT_DOUBLE_EQ(graph_table(job, notes)[0].kernels_between.value(), 10);
  lines<record::ReplaysLine>(job, 0)[0].launches_after_another.reset();
  EXPECT_FALSE(graph_table(job, notes)[0].kernels_between);
  EXPECT_FALSE(graph_table(job, notes)[0].between);
  notes.resize(1);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("3 kernels and calls between replays are not told apart"),
            std::string::npos)
      << notes[0];
}

TEST(GraphTable, TheShareOfTheDevicesTimeIsThatOfTheWindow) {
  WatchedJob job = clean_job();
  record::DeviceTimeLine window{.seconds = 0.03,
                                .steps = 3,
                                .launches = 3,
                                .records = 90,
                                .graph_ns = 3000,
                                .kernels = 80,
                                .kernel_ns = 900,
                                .copy_ns = 60,
                                .fill_ns = 40,
                                .graphs = {{.executable = 1, .launches = 3, .ns = 3000}}};
  lines<record::DeviceTimeLine>(job, 0) = {window};
  std::vector<std::string> notes;
  std::vector<record::GraphRow> rows = graph_table(job, notes);
  EXPECT_DOUBLE_EQ(rows[0].device_time_share.value(), 0.75);
  EXPECT_DOUBLE_EQ(rows[1].device_time_share.value(), 0) << "not launched in the window";
  EXPECT_FALSE(rows[8].device_time_share) << "the other rank was not measured";
  const std::map<std::string, double> figures = watched_figures(job);
  EXPECT_DOUBLE_EQ(figures.at("device_time_share"), 0.75);
  EXPECT_DOUBLE_EQ(figures.at("device_busy_share"), 4000 / 0.03e9);
  EXPECT_DOUBLE_EQ(figures.at("kernel_us"), 0.9 / 80);
  EXPECT_DOUBLE_EQ(figures.at("kernels_per_step"), 80.0 / 3);
  window.dropped = 1;
  lines<record::DeviceTimeLine>(job, 0) = {window};
  EXPECT_FALSE(graph_table(job, notes)[0].device_time_share) << "of a part it is not known";
  for (const char* name :
       {"device_time_share", "device_busy_share", "kernel_us", "kernels_per_step"})
    EXPECT_FALSE(watched_figures(job).contains(name)) << name;
}

TEST(GraphTable, AProcessWithVeryManyGraphsHasTheLargestOnly) {
  WatchedJob job = clean_job();
  auto& made = lines<record::ExecutableGraphLine>(job, 1);
  for (std::int64_t number = 9; number <= 200; ++number) {
    made.push_back(made[7]);
    made.back().executable = number;
  }
  std::vector<std::string> notes;
  const std::vector<record::GraphRow> rows = graph_table(job, notes);
  EXPECT_EQ(rows.size(), 8u + 64u);
  EXPECT_EQ(rows[8].executable, 1);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("made 200 graphs"), std::string::npos) << notes[0];
}

TEST(WatchedFigures, AreOfTheWholeRun) {
  const std::map<std::string, double> figures = watched_figures(clean_job());
  EXPECT_DOUBLE_EQ(figures.at("graph_share"), 206.0 * 18 / (206 * 18 + 600));
  EXPECT_EQ(figures.at("graphs"), 16);
  EXPECT_EQ(figures.at("steps"), 100);
  EXPECT_EQ(figures.at("live_graphs"), 8);
}

TEST(WatchedFigures, WhatComesBeforeTheFirstReplayIsNotPartOfTheSteadyShare) {
  WatchedJob job = clean_job();
  line_of(job, 1).kernels_before_graphs = 300;
  line_of(job, 1).threads[0].graph_launches = 106;
  const std::map<std::string, double> figures = watched_figures(job);
  EXPECT_DOUBLE_EQ(figures.at("steady_share"), 2 * 3708.0 / (2 * 3708 + 500 + 300));
  EXPECT_DOUBLE_EQ(figures.at("least_steady_share"), 3708.0 / (3708 + 500));
  EXPECT_DOUBLE_EQ(figures.at("replays_a_step"), (206.0 + 106) / 200);
  EXPECT_DOUBLE_EQ(figures.at("least_replays_a_step"), 1.06);
  line_of(job, 0).kernels_before_graphs.reset();
  EXPECT_FALSE(watched_figures(job).contains("steady_share"));
}

TEST(WatchedFigures, AShareThatIsNotKnownIsLeftOut) {
  WatchedJob job = clean_job();
  line_of(job, 1).retired_launches = 7;
  EXPECT_FALSE(watched_figures(job).contains("graph_share"));
}

}  // namespace
}  // namespace graphproof::checks::watched
