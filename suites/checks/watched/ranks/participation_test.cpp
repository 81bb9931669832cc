#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedParticipation, Rows) {
  judge_watched_rows(
      "D26.participation",
      {{.name = "one launch fewer",
        .change = [](WatchedJob& job) { lines<record::ReplaysLine>(job, 1)[0].launches = 99; },
        .rank = 1,
        .mentions = {"rank 1 (node-1.4712)", "rank 0 (node-1.4711)",
                     "99 replayed collectives against 100", "0xabcd"},
        .also = {"D35.pool_order"}},
       {.name = "one launch fewer, and it hangs",
        .change =
            [](WatchedJob& job) {
              lines<record::ReplaysLine>(job, 1)[0].launches = 99;
              job.run.ending = "hung";
              job.run.exit_code.reset();
            },
        .rank = 1,
        .mentions = {"99 replayed"},
        .also = {"D35.pool_order", "D22.progress"}},
       {.name = "the graph of another size",
        .change =
            [](WatchedJob& job) {
              // Both ranks have a graph of a larger batch; only rank 1 replays it, once.
              for (std::size_t rank : {0u, 1u}) {
                auto larger = lines<record::NcclCallLine>(job, rank)[0];
                larger.capture = 3;
                larger.elements = 2048;
                lines<record::NcclCallLine>(job, rank).push_back(larger);
                lines<record::ReplaysLine>(job, rank)[2].launches = 1;
              }
              lines<record::ReplaysLine>(job, 1)[0].launches = 99;
              lines<record::ReplaysLine>(job, 1)[2].launches = 2;
            },
        .rank = 1,
        .mentions = {"it replayed other collectives than rank 0 (node-1.4711)",
                     "AllReduce of 1024 x ncclFloat32: 99 against 100", "0xabcd"},
        .also = {"D35.pool_order"}},
       {.name = "the user stopped the run",
        .change =
            [](WatchedJob& job) {
              lines<record::ReplaysLine>(job, 1)[0].launches = 99;
              job.run.ending = "interrupted";
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"the run was stopped"},
        .also = {"*"}},
       {.name = "a rank ended with an error",
        .change =
            [](WatchedJob& job) {
              lines<record::ReplaysLine>(job, 1)[0].launches = 99;
              job.run.exit_code = 1;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"ended before the others"},
        .also = {"*"}},
       {.name = "evidence of one rank of two",
        .change = [](WatchedJob& job) { job.processes.pop_back(); },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"evidence of 1 of 2 ranks"},
        .also = {"*"}}});
}

TEST(WatchedParticipation, RanksMayCutTheirStepsDifferently) {
  WatchedJob job = clean_job();
  // Rank 1 has both collectives of a step in one graph, which it launches half as often.
  for (std::size_t rank : {0u, 1u})
    lines<record::NcclCallLine>(job, rank)[0].count = 1 + static_cast<std::int64_t>(rank);
  lines<record::ReplaysLine>(job, 1)[0].launches = 50;
  EXPECT_EQ(result_of("D26.participation", job).result, record::Result::pass);
}

TEST(WatchedParticipation, LaunchesWithoutALineProveNothing) {
  WatchedJob job = clean_job();
  lines<record::ReplaysLine>(job, 1)[0].launches = 99;
  line_of(job, 1).retired_launches = 1;
  EXPECT_EQ(result_of("D26.participation", job).result, record::Result::unexercised);
}

}  // namespace
}  // namespace graphproof::checks::watched
