#include <gtest/gtest.h>

#include "suites/checks/watched/job/steady_share.h"
#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedGraphShare, Rows) {
  judge_watched_rows("D63.graph_share",
                     {{.name = "steps go on eagerly",
                       .change =
                           [](WatchedJob& job) {
                             for (auto& replays : lines<record::ReplaysLine>(job, 1))
                               if (replays.launches > 1) {
                                 replays.last_step = 19;
                                 replays.steps = 20;
                               }
                           },
                       .rank = 1,
                       .mentions = {"graph 1", "after 19 steps", "made 100"}},
                      {.name = "a smaller share than asked for",
                       .change = [](WatchedJob& job) { job.run.expected_graph_share = 0.9999; },
                       .rank = 0,
                       .mentions = {"at least 0.9999", "600 outside"}},
                      {.name = "fewer kernels in graphs than in an earlier run",
                       .change =
                           [](WatchedJob& job) {
                             job.run.against = "/data/runs/before";
                             job.run.earlier = steady_figures(job);
                             line_of(job, 1).threads[0].kernels += 2000;
                           },
                       .rank = std::nullopt,
                       .mentions = {"the share of the kernels in graphs is smaller than before",
                                    "/data/runs/before"}},
                      {.name = "fewer replays in a step than in an earlier run",
                       .change =
                           [](WatchedJob& job) {
                             job.run.against = "/data/runs/before";
                             job.run.earlier = steady_figures(job);
                             line_of(job, 1).threads[0].graph_launches = 103;
                           },
                       .rank = std::nullopt,
                       .mentions = {"replays in a training step is smaller"}},
                      {.name = "fewer replays of the same command",
                       .change =
                           [](WatchedJob& job) {
                             job.run.against = "/data/runs/before";
                             job.run.earlier = {{{"graph_launches", 1000.0}}};
                           },
                       .rank = std::nullopt,
                       .mentions = {"of the same command", "412"}},
                      {.name = "an earlier run without figures",
                       .change = [](WatchedJob& job) { job.run.against = "/data/runs/before"; },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"no figure that can be compared"}},
                      {.name = "evidence of an older probe",
                       .change =
                           [](WatchedJob& job) {
                             job.run.against = "/data/runs/before";
                             job.run.earlier = steady_figures(job);
                             line_of(job, 1).kernels_before_graphs.reset();
                           },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"is not known of this run"}},
                      {.name = "no steps were seen",
                       .change = [](WatchedJob& job) { hide(job, "training_steps"); },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"training_steps"}}});
}

TEST(WatchedGraphShare, TheLastStepsMayBeEager) {
  WatchedJob job = clean_job();
  for (auto& replays : lines<record::ReplaysLine>(job, 1))
    if (replays.launches > 1) replays.last_step = 92;
  EXPECT_EQ(result_of("D63.graph_share", job).result, record::Result::pass);
}

TEST(WatchedGraphShare, ARunThatLostAllItsGraphsHasLessThanBefore) {
  WatchedJob job = clean_job();
  job.run.against = "/data/runs/before";
  job.run.earlier = steady_figures(job);
  for (std::size_t rank : {0u, 1u}) {
    record::WatchedProcessLine line = line_of(job, rank);
    line.captures = line.executables = 0;
    for (record::WatchedThread& thread : line.threads) thread.graph_launches = 0;
    process_of(job, rank).evidence = {};
    lines<record::WatchedProcessLine>(job, rank) = {line};
  }
  EXPECT_EQ(result_of("D63.graph_share", job).result, record::Result::fail);
  hide(job, "driver_calls");
  EXPECT_EQ(result_of("D63.graph_share", job).result, record::Result::unexercised);
}

TEST(WatchedGraphShare, AsMuchAsBeforePassesWhateverTheLength) {
  WatchedJob job = clean_job();
  job.run.against = "/data/runs/before";
  job.run.earlier = steady_figures(job);
  EXPECT_EQ(result_of("D63.graph_share", job).result, record::Result::pass);
  // Half of the steps, with the same warm-up.
  for (std::size_t rank : {0u, 1u}) {
    line_of(job, rank).steps = 50;
    line_of(job, rank).threads[0].graph_launches = 106;
    line_of(job, rank).threads[0].kernels = 250 + 50;
    line_of(job, rank).threads[1].kernels = 50;
    for (auto& replays : lines<record::ReplaysLine>(job, rank)) {
      if (replays.launches != 100) continue;
      replays.launches = 50;
      replays.steps = 50;
      replays.last_step = 49;
    }
  }
  EXPECT_EQ(result_of("D63.graph_share", job).result, record::Result::pass)
      << record::to_text(result_of("D63.graph_share", job).message);
}

TEST(WatchedGraphShare, ANewGraphMayReplaceAnOlderOne) {
  WatchedJob job = clean_job();
  lines<record::ReplaysLine>(job, 1)[0].last_step = 40;
  EXPECT_EQ(result_of("D63.graph_share", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
