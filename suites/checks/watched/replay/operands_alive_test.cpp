#include <gtest/gtest.h>

#include "suites/checks/watched/testing/watched_rows.h"

namespace graphproof::checks::watched {
namespace {

TEST(WatchedOperandsAlive, Rows) {
  judge_watched_rows(
      "D05.operands_alive",
      {{.name = "a block was freed",
        .change =
            [](WatchedJob& job) {
              lines<record::OperandBlocksLine>(job, 1).push_back({.executable = 1,
                                                                  .moment = "sample",
                                                                  .launches = 20,
                                                                  .blocks = 6,
                                                                  .known = true,
                                                                  .pool_known = true,
                                                                  .freed_blocks = 1,
                                                                  .freed = {{.address = "0x7f00",
                                                                             .bytes = 512,
                                                                             .pool = {0, 0},
                                                                             .node = "scale",
                                                                             .place = "field"}}});
            },
        .rank = 1,
        .mentions = {"graph 1", "1 of 6 blocks", "512 bytes", "scale", "80 launches afterwards"}},
       {.name = "memory went back to the driver",
        .change =
            [](WatchedJob& job) {
              lines<record::OperandReleasedLine>(job, 0).push_back({.executable = 2,
                                                                    .address = "0x7f00",
                                                                    .bytes = 4096,
                                                                    .memory = "mapped",
                                                                    .function = "cuMemUnmap",
                                                                    .words = 1,
                                                                    .addresses = 1});
              lines<record::ReplaysLine>(job, 0)[1].launches_after_free = 3;
            },
        .rank = 0,
        .mentions = {"cuMemUnmap", "3 launches"}},
       {.name = "a tensor went out of scope within the capture",
        .change =
            [](WatchedJob& job) {
              auto& line = lines<record::OperandBlocksLine>(job, 1)[1];
              line.free_at_capture = 1;
              line.free_at_capture_blocks = {{.address = "0x7f00",
                                              .bytes = 2048,
                                              .pool = {0, 0},
                                              .node = "scale",
                                              .place = "parameter"}};
            },
        .rank = 1,
        .mentions = {"graph 2", "freed before its capture had ended", "2048 bytes",
                     "99 launches afterwards"}},
       {.name = "parameters that cannot be read",
        .change =
            [](WatchedJob& job) {
              for (auto& graph : lines<record::WatchedGraphLine>(job, 1))
                graph.without_layout = graph.kernel_nodes;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"the parameters of 18 of 18 kernels cannot be read"},
        .also = {"D66.library_workspace"}},
       {.name = "an update that was not read again",
        .change =
            [](WatchedJob& job) {
              auto& update = lines<record::GraphUpdateLine>(job, 1)[0];
              update.operands_read = false;
              update.operands_kept = false;
              update.launches = 50;
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"what graph 2", "points to since cuGraphExecUpdate_v2 was not read again"},
        .also = {"D60.host_memory_operands", "D66.library_workspace"}},
       {.name = "never looked up",
        .change =
            [](WatchedJob& job) {
              lines<record::OperandBlocksLine>(job, 1).erase(
                  lines<record::OperandBlocksLine>(job, 1).begin());
            },
        .want = record::Result::unexercised,
        .rank = std::nullopt,
        .mentions = {"graph 1", "not looked up"}}});
}

TEST(WatchedOperandsAlive, WhatMayBeNoOperandIsNoDefectIfItIsFree) {
  const record::OperandBlock parameter = {
      .address = "0x7f00", .bytes = 2048, .pool = {0, 0}, .node = "scale", .place = "parameter"};
  record::OperandBlock padding = parameter, of_another_pool = parameter;
  padding.place = "field";
  of_another_pool.pool = {0, 4};  // written again by each replay of the graph that owns the pool
  WatchedJob job = clean_job();
  lines<record::OperandBlocksLine>(job, 1)[1].free_at_capture_blocks = {padding, of_another_pool};
  EXPECT_EQ(result_of("D05.operands_alive", job).result, record::Result::pass);
  lines<record::OperandBlocksLine>(job, 1)[1].free_at_capture_blocks = {parameter};
  lines<record::OperandBlocksLine>(job, 1)[1].launches = 100;
  EXPECT_EQ(result_of("D05.operands_alive", job).result, record::Result::pass)
      << "it is not launched afterwards";
}

TEST(WatchedOperandsAlive, ABlockThatIsFreedAfterTheLastLaunchIsSound) {
  WatchedJob job = clean_job();
  lines<record::OperandBlocksLine>(job, 1).push_back({.executable = 1,
                                                      .moment = "free",
                                                      .launches = 100,
                                                      .blocks = 6,
                                                      .known = true,
                                                      .pool_known = true,
                                                      .freed_blocks = 6});
  EXPECT_EQ(result_of("D05.operands_alive", job).result, record::Result::pass);
}

}  // namespace
}  // namespace graphproof::checks::watched
