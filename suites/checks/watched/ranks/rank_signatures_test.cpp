#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedRankSignatures, Rows) {
  judge_watched_rows(
      "D24.rank_signatures",
      {{.name = "another kernel on one rank",
        .change =
            [](WatchedJob& job) {
              lines<record::WatchedCaptureLine>(job, 1)[0].graph = "00000000000000ff";
              auto& graph = lines<record::WatchedGraphLine>(job, 1)[0];
              graph.signature = "00000000000000ff";
              lines<record::ExecutableGraphLine>(job, 1)[0].graph = "00000000000000ff";
              lines<record::GraphOrderLine>(job, 1)[0].graph = "00000000000000ff";
              graph.kernels.push_back({.name = "clamp", .count = 1});
              graph.nodes["kernel"] = 19;
            },
        .rank = 1,
        .mentions = {"capture 1", "kernel clamp: 1 against 0", "rank 0 (node-1.4711)"}},
       {.name = "other collectives",
        .change = [](WatchedJob& job) { lines<record::NcclCallLine>(job, 1)[0].elements = 2048; },
        .rank = 1,
        .mentions = {"0xabcd"},
        .also = {"D26.participation"}},
       {.name = "no collectives",
        .change =
            [](WatchedJob& job) {
              for (std::size_t rank : {0u, 1u}) {
                lines<record::WatchedCaptureLine>(job, rank)[0].collectives = 0;
              }
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"no capture of it holds calls of NCCL"},
        .also = {"*"}}});
}

TEST(WatchedRankSignatures, LaunchShapesMayDiffer) {
  WatchedJob job = clean_job();
  lines<record::WatchedCaptureLine>(job, 1)[0].graph = "00000000000000ff";
  lines<record::ExecutableGraphLine>(job, 1)[0].graph = "00000000000000ff";
  auto& graph = lines<record::WatchedGraphLine>(job, 1)[0];
  graph.signature = "00000000000000ff";
  graph.kernels[0].shape[0] = 2;
  EXPECT_EQ(result_of("D24.rank_signatures", job).result, record::Result::pass);
}

TEST(WatchedRankSignatures, RanksOfAnotherRoleAreNotCompared) {
  WatchedJob job = clean_job();
  lines<record::WatchedCaptureLine>(job, 1)[0].graph = "00000000000000ff";
  lines<record::WatchedCaptureLine>(job, 1)[0].collectives_signature = "ffffffffffffffff";
  EXPECT_EQ(result_of("D24.rank_signatures", job).result, record::Result::pass);
}

// In a ring or a pipeline the work depends on the place of the rank.
TEST(WatchedRankSignatures, RanksThatSendToEachOtherAreNotCompared) {
  WatchedJob job = clean_job();
  lines<record::WatchedCaptureLine>(job, 1)[0].graph = "00000000000000ff";
  lines<record::ExecutableGraphLine>(job, 1)[0].graph = "00000000000000ff";
  auto& graph = lines<record::WatchedGraphLine>(job, 1)[0];
  graph.signature = "00000000000000ff";
  graph.kernels.push_back({.name = "clamp", .count = 1});
  EXPECT_EQ(result_of("D24.rank_signatures", job).result, record::Result::fail);
  const auto sends = [&](std::size_t rank) {
    auto& calls = lines<record::NcclCallLine>(job, rank);
    calls.push_back(calls[0]);
    calls.back().function = "Send";
  };
  sends(1);
  EXPECT_EQ(result_of("D24.rank_signatures", job).result, record::Result::pass);
  sends(0);
  EXPECT_EQ(result_of("D24.rank_signatures", job).result, record::Result::unexercised)
      << "nothing is left to compare";
  lines<record::NcclCallLine>(job, 1)[0].elements = 2048;
  EXPECT_EQ(result_of("D24.rank_signatures", job).result, record::Result::fail)
      << "collectives are compared nevertheless";
}

TEST(WatchedRankSignatures, TheLauncherIsNoRank) {
  WatchedJob job = clean_job();
  JobProcess agent{.name = "node-1.4700", .evidence = {}};
  agent.evidence.lines<record::WatchedProcessLine>() = {
      {.host = "node-1", .pid = 4700, .profile = "full", .state = "ended"}};
  job.processes.insert(job.processes.begin(), agent);
  EXPECT_EQ(result_of("D24.rank_signatures", job).result, record::Result::pass);
  EXPECT_EQ(result_of("D26.participation", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
