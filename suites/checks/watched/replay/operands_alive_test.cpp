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
