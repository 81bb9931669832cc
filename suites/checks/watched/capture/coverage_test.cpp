#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedCoverage, Rows) {
  judge_watched_rows(
      "D18.coverage",
      {{.name = "an empty graph is launched",
        .change =
            [](WatchedJob& job) {
              auto& graph = lines<record::WatchedGraphLine>(job, 1)[4];
              graph.total = 0;
              graph.nodes.clear();
              graph.kernels.clear();
              graph.kernel_nodes = 0;
            },
        .rank = 1,
        .mentions = {"graph 5, captured at /data/train.py:45 step, is empty", "1 launches"}},
       {.name = "a graph that could not be read",
        .change =
            [](WatchedJob& job) {
              auto& graph = lines<record::WatchedGraphLine>(job, 1)[4];
              graph = {.signature = graph.signature,
                       .failure = "the driver has no cuGraphGetNodes"};
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"graph 5", "were not read whole: the driver has no cuGraphGetNodes"},
        .also = {"D05.operands_alive", "D60.host_nodes", "D60.host_memory_operands",
                 "D66.library_workspace"}},
       {.name = "nothing is launched",
        .change =
            [](WatchedJob& job) {
              for (auto& replays : lines<record::ReplaysLine>(job, 1)) replays.launches = 0;
              for (auto& replays : lines<record::ReplaysLine>(job, 0)) replays.launches = 0;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"no graph was launched"},
        .also = {"*"}}});
}

TEST(WatchedCoverage, AnEmptyGraphThatIsNeverLaunchedIsSound) {
  WatchedJob job = clean_job();
  auto& graph = lines<record::WatchedGraphLine>(job, 1)[4];
  graph.total = 0;
  lines<record::ReplaysLine>(job, 1)[4].launches = 0;
  EXPECT_EQ(result_of("D18.coverage", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
