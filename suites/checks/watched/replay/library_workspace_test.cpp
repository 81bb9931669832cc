#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedLibraryWorkspace, Rows) {
  judge_watched_rows(
      "D66.library_workspace",
      {{.name = "a workspace was freed",
        .change =
            [](WatchedJob& job) {
              lines<record::OperandBlocksLine>(job, 1).push_back(
                  {.executable = 2,
                   .moment = "sample",
                   .launches = 20,
                   .blocks = 6,
                   .known = true,
                   .pool_known = true,
                   .freed_blocks = 1,
                   .freed = {{.address = "0x7f00",
                              .bytes = 33554432,
                              .pool = {0, 0},
                              .node = "nvjet_tst_128x64",
                              .place = "parameter"}}});
            },
        .rank = 1,
        .mentions = {"graph 2", "33554432", "nvjet"},
        .also = {"D05.operands_alive"}},
       {.name = "no product",
        .change =
            [](WatchedJob& job) {
              for (std::size_t rank : {0u, 1u})
                lines<record::WatchedGraphLine>(job, rank)[1].kernels.clear();
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"no graph that was launched has a kernel of cuBLAS"}},
       {.name = "memory of a workspace went back",
        .change =
            [](WatchedJob& job) {
              lines<record::OperandReleasedLine>(job, 1).push_back(
                  {.executable = 2,
                   .address = "0x7f00",
                   .bytes = 8519680,
                   .memory = "device",
                   .function = "cuMemFree_v2",
                   .words = 1,
                   .addresses = 0,
                   .operands = {
                       {.address = "0x7f00", .node = "nvjet_tst_128x64", .place = "field"}}});
              lines<record::ReplaysLine>(job, 1)[1].launches_after_free = 3;
            },
        .rank = 1,
        .mentions = {"cuMemFree_v2"}}});
}

/// Two graphs of rank 1 whose products use one workspace.
WatchedJob with_a_shared_workspace(std::vector<std::string> first,
                                   std::vector<std::string> second) {
  WatchedJob job = clean_job();
  for (const std::int64_t executable : {1, 2})
    lines<record::OperandBlocksLine>(job, 1).push_back({.executable = executable,
                                                        .moment = "capture",
                                                        .blocks = 1,
                                                        .known = true,
                                                        .pool_known = true,
                                                        .largest = {{{.address = "0x7f00",
                                                                      .bytes = 33554432,
                                                                      .pool = {0, 0},
                                                                      .node = "nvjet_tst_128x64",
                                                                      .place = "parameter"}}}});
  lines<record::ReplaysLine>(job, 1)[0].streams = std::move(first);
  lines<record::ReplaysLine>(job, 1)[1].streams = std::move(second);
  return job;
}

TEST(WatchedLibraryWorkspace, ASharedWorkspaceIsSoundInTheOrderOfOneStream) {
  EXPECT_EQ(result_of("D66.library_workspace", with_a_shared_workspace({"0x1"}, {"0x1"})).result,
            record::Result::pass);
}

TEST(WatchedLibraryWorkspace, ASharedWorkspaceIsSoundWhereEventsOrderTheLaunches) {
  WatchedJob job = with_a_shared_workspace({"0x1"}, {"0x2"});
  EXPECT_EQ(result_of("D66.library_workspace", job).result, record::Result::pass);
  lines<record::ConcurrentLaunchesLine>(job, 1).push_back(
      {.executable = 2,
       .other = 1,
       .stream = "0x2",
       .count = 20,
       .blocks = {{.address = "0x7f00", .bytes = 33554432, .pool = {0, 0}}}});
  const record::CheckResult together = result_of("D66.library_workspace", job);
  EXPECT_EQ(together.result, record::Result::fail);
  EXPECT_NE(record::to_text(together.message).find("workspace at 0x7f00, 20 launches"),
            std::string::npos)
      << record::to_text(together.message);
}

TEST(WatchedLibraryWorkspace, WithoutTheOrderOfLaunchesASharedWorkspaceIsNotJudged) {
  WatchedJob job = with_a_shared_workspace({"0x1"}, {"0x2"});
  line_of(job, 1).launches_ordered.reset();
  const record::CheckResult apart = result_of("D66.library_workspace", job);
  EXPECT_EQ(apart.result, record::Result::unexercised);
  EXPECT_NE(record::to_text(apart.message).find("workspace at 0x7f00"), std::string::npos)
      << record::to_text(apart.message);
}

}  // namespace
}  // namespace graphproof::checks::watched
