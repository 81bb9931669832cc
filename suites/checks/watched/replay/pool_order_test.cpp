#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedPoolOrder, Rows) {
  judge_watched_rows("D35.pool_order",
                     {{.name = "the later graph goes first",
                       .change =
                           [](WatchedJob& job) {
                             auto& replays = lines<record::ReplaysLine>(job, 1)[1];
                             replays.first_s = 1.99;
                             replays.last_s = 11.99;
                           },
                       .rank = 1,
                       .mentions = {"graph 2", "shares a pool with graph 1", "100 of each"}},
                      {.name = "no shared pool",
                       .change =
                           [](WatchedJob& job) {
                             for (std::size_t rank : {0u, 1u})
                               lines<record::WatchedCaptureLine>(job, rank)[1].pool =
                                   std::vector<std::int64_t>{0, 77};
                           },
                       .want = record::Result::unexercised,
                       .rank = std::nullopt,
                       .mentions = {"no two graphs share"}}});
}

TEST(WatchedPoolOrder, GraphsOfWhichOneOrTheOtherRunsHaveNoOrder) {
  WatchedJob job = clean_job();
  auto& replays = lines<record::ReplaysLine>(job, 1)[1];
  replays.first_s = 1.95;
  replays.launches = 37;
  EXPECT_EQ(result_of("D35.pool_order", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
