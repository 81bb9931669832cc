#include <gtest/gtest.h>

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

TEST(WatchedGraphShare, ANewGraphMayReplaceAnOlderOne) {
  WatchedJob job = clean_job();
  lines<record::ReplaysLine>(job, 1)[0].last_step = 40;
  EXPECT_EQ(result_of("D63.graph_share", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
