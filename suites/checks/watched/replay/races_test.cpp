#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

void race_in_graph_1(WatchedJob& job) {
  lines<record::GraphRaceLine>(job, 1).push_back(
      {.capture = 1,
       .graph = lines<record::ExecutableGraphLine>(job, 1)[0].graph,
       .write = "memcpy",
       .address = "0x7f00",
       .bytes = 4096,
       .other = "scale",
       .other_place = "parameter",
       .other_address = "0x7f00"});
}

record::ConcurrentLaunchesLine concurrent(std::int64_t pool_addresses) {
  return {.executable = 2,
          .other = 1,
          .stream = "0x2",
          .count = 20,
          .pool_addresses = pool_addresses,
          .blocks = {{.address = "0x7f00",
                      .bytes = 4096,
                      .pool = {0, 0},
                      .node = "scale",
                      .place = "parameter"}}};
}

TEST(WatchedRaces, Rows) {
  judge_watched_rows(
      "D56.races",
      {{.name = "a copy and a kernel",
        .change = race_in_graph_1,
        .rank = 1,
        .mentions = {"graph 1", "memcpy of 4096 bytes", "scale with 0x7f00 (parameter)"}},
       {.name = "two graphs in one pool",
        .change =
            [](WatchedJob& job) {
              lines<record::ConcurrentLaunchesLine>(job, 1).push_back(concurrent(3));
            },
        .rank = 1,
        .mentions = {"graph 2", "graph 1", "3 addresses of the pool", "20 launches"}},
       {.name = "evidence of an older probe",
        .change = [](WatchedJob& job) { lines<record::GraphOrderLine>(job, 1).clear(); },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"the order of the nodes of graph 1"}},
       {.name = "writes that were not looked at",
        .change =
            [](WatchedJob& job) { lines<record::GraphOrderLine>(job, 1)[0].not_looked_at = 2; },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"2 were not looked at"}},
       {.name = "the order of launches was lost",
        .change =
            [](WatchedJob& job) {
              line_of(job, 1).launches_ordered = false;
              lines<record::ReplaysLine>(job, 1)[0].streams = {{"0x1", "0x2"}};
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"launches on 2 streams"}},
       {.name = "graphs without branches on one stream",
        .change =
            [](WatchedJob& job) {
              for (std::size_t rank : {0u, 1u})
                for (auto& order : lines<record::GraphOrderLine>(job, rank))
                  order.concurrent_writes = 0;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"all launches are on one stream"}}});
}

TEST(WatchedRaces, AGraphThatIsNeverLaunchedDoesNotRace) {
  WatchedJob job = clean_job();
  race_in_graph_1(job);
  lines<record::ReplaysLine>(job, 1)[0].launches = 0;
  EXPECT_EQ(result_of("D56.races", job).result, record::Result::pass);
}

TEST(WatchedRaces, WhatTwoGraphsReadOutsideTheirPoolIsNoRace) {
  WatchedJob job = clean_job();
  lines<record::ConcurrentLaunchesLine>(job, 1).push_back(concurrent(0));
  EXPECT_EQ(result_of("D56.races", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
